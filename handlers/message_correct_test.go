package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

func TestOutputThatCannotBeUsedIsCorrectedAndRunOnce(t *testing.T) {
	t.Parallel()
	for name, output := range map[string]string{"it does not fit its model": `{"name":"Shop"}`, "it has no object": "I would call it Shop."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newCorrectionKit(t, 2, "", always("Here:\n```json\n{\"title\": \"Shop\",}\n```"))
			m := k.deliver("m1", "Architect", output)
			failed, response := k.responseOf("m1"), k.responseOf("m1~1")
			require.Equal(t, "validation_failed", failed["code"])
			require.Equal(t, true, failed["correcting"])
			require.Equal(t, true, response["success"])
			require.Equal(t, usage(1), response["usage"])
			require.Nil(t, response["correcting"])
			call := k.event(subjects.TurnKey("app", "chat", "", "m1~1").Public(events.KindToolCall))
			require.Equal(t, "m1", call["correction_of"])
			require.EqualValues(t, 1, k.entered.Load())
			require.Equal(t, map[string]any{"title": "Shop"}, *k.built.Load())

			asked := *k.last.Load()
			messages, ok := asked["messages"].([]any)
			require.True(t, ok)
			require.Len(t, messages, 4)
			require.Equal(t, map[string]any{"role": "assistant", "content": output}, messages[2])
			require.NotEmpty(t, messages[3].(map[string]any)["content"])                                              //nolint:forcetypeassert // the request has texts
			require.Equal(t, failed["payload"].(map[string]any)["feedback"], messages[3].(map[string]any)["content"]) //nolint:forcetypeassert // likewise
			require.Contains(t, asked, "response_format")
			require.Equal(t, "agent:editor", k.record("m1", 1, events.KindToolCall)["tool_name"])
			require.Equal(t, "Critic", k.of("m1", "handoff")["to"])

			k.handled(again(m))
			require.EqualValues(t, 1, k.asked.Load())
			require.EqualValues(t, 1, k.entered.Load())
			require.Nil(t, k.responseOf("m1~2"))
		})
	}
}

func TestModelThatNeverGetsItRightIsAskedAsOftenAsAllowed(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 2, "", always(`{"titel":"Shop"}`))
	m := k.deliver("m1", "Architect", `{"name":"Shop"}`)
	k.handled(again(m))
	for turn, correcting := range map[string]any{"m1": true, "m1~1": true, "m1~2": nil} {
		response := k.responseOf(turn)
		require.Equal(t, "validation_failed", response["code"], turn)
		require.Equal(t, correcting, response["correcting"], turn)
		require.NotEmpty(t, response["payload"].(map[string]any)["feedback"], turn) //nolint:forcetypeassert // the schema of the event
	}
	require.Equal(t, usage(2), k.responseOf("m1~2")["usage"])
	require.EqualValues(t, 2, k.asked.Load())
	require.Zero(t, k.entered.Load())
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
	messages, ok := (*k.last.Load())["messages"].([]any)
	require.True(t, ok)
	require.Equal(t, map[string]any{"role": "assistant", "content": `{"titel":"Shop"}`}, messages[2], "the last output")
}

func TestWithoutCorrectionsNothingIsAsked(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 0, "", always(`{"title":"Shop"}`))
	k.deliver("m1", "Architect", `{"name":"Shop"}`)
	require.Nil(t, k.responseOf("m1")["correcting"])
	require.Zero(t, k.asked.Load())
	require.Nil(t, k.of("m1", "text")["corrections"])
}

func TestOutputThatWasCutOffIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 2, "", always(`{"title":"Shop"}`))
	k.deliver("m1", "Architect", `{"title":"Sho`)
	k.deliver("m2", "Architect", `no JSON`, func(e *events.AgentMessage) { e.FinishReason = "length" })
	for _, turn := range []string{"m1", "m2"} {
		require.Equal(t, "validation_failed", k.responseOf(turn)["code"])
		require.Nil(t, k.responseOf(turn)["correcting"])
	}
	require.Zero(t, k.asked.Load())

	k = newCorrectionKit(t, 2, "", func(_ int64, w io.Writer) { _, _ = io.WriteString(w, completed(`{"title":"Sho`, "length")) })
	k.deliver("m1", "Architect", `{"name":"Shop"}`)
	require.Equal(t, true, k.responseOf("m1")["correcting"])
	require.Equal(t, "validation_failed", k.responseOf("m1~1")["code"])
	require.Nil(t, k.responseOf("m1~1")["correcting"])
	require.Equal(t, usage(1), k.responseOf("m1~1")["usage"])
	require.EqualValues(t, 1, k.asked.Load())
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}

func TestModelThatDoesNotReplyEndsTheCorrections(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		reply func(int64, io.Writer)
		code  string
	}{
		"a failing endpoint": {func(_ int64, w io.Writer) {
			w.(http.ResponseWriter).WriteHeader(http.StatusInternalServerError) //nolint:forcetypeassert // it is one
		}, "tool_error"},
		"a reply of 100 MB": {func(_ int64, w io.Writer) {
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"`)
			chunk := strings.Repeat("x", 1<<20)
			for range 100 {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, `"}}]}`)
		}, "too_large"},
		"a reply of 2 MiB": {always(`{"title":"` + strings.Repeat("x", 2<<20) + `"}`), "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newCorrectionKit(t, 2, "", one.reply)
			m := k.deliver("m1", "Architect", `{"name":"Shop"}`)
			k.handled(again(m))
			require.Equal(t, one.code, k.responseOf("m1~1")["code"])
			require.Contains(t, k.responseOf("m1~1")["content"], "could not be corrected")
			require.EqualValues(t, 1, k.asked.Load())
			require.Equal(t, "Critic", k.of("m1", "handoff")["to"])

			k.deliver("m2", "Critic", `{"name":"Shop"}`)
			output := k.of("m2", "structured_output")
			require.Equal(t, "validation_failed", output["code"])
			require.Contains(t, output["content"], "could not be corrected")
			require.NotEmpty(t, output["payload"].(map[string]any)["feedback"]) //nolint:forcetypeassert // the schema of the event
		})
	}
}

func TestOutputOfAnAgentWithoutAToolIsStoredAsItWasCorrected(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 2, "", func(n int64, w io.Writer) {
		_, _ = io.WriteString(w, completed(map[bool]string{true: `{"titel":1}`, false: `{"title":"Shop"}`}[n == 1], "stop"))
	})
	m := k.deliver("m1", "Critic", "no JSON")
	k.handled(again(m))
	output := k.of("m1", "structured_output")
	require.Equal(t, true, output["success"])
	require.Equal(t, map[string]any{"title": "Shop"}, output["payload"])
	require.Equal(t, usage(2), output["usage"])
	require.EqualValues(t, 2, k.asked.Load())
	require.Equal(t, []string{"text"}, k.kinds("m1")[:1])
	require.Equal(t, "user", k.of("m1", "handoff")["to"])
	require.Zero(t, k.entered.Load())
}

// dying is a store whose worker dies when it creates a record.
type dying struct {
	*storetest.Memory

	key string
	die func() // ends the lease; nil once it has died
}

func (d *dying) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if d.die == nil || r.Key != d.key {
		return d.Memory.Create(ctx, r)
	}
	d.die()
	return 0, errors.New("no response from the server")
}

func TestCorrectionIsAskedForAgainOnceTheMessageHasExpired(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 1, "", func(n int64, w io.Writer) {
		_, _ = io.WriteString(w, completed(fmt.Sprintf(`{"title":"Shop %d"}`, n), "stop"))
	})
	k.deliver("m1", "Critic", "I would call it Shop.")
	require.Equal(t, map[string]any{"title": "Shop 1"}, k.of("m1", "structured_output")["payload"])
	k.expireText("m1")
	k.deliver("m1", "Critic", "I would call it Bazaar.")
	require.Equal(t, map[string]any{"title": "Shop 2"}, k.of("m1", "structured_output")["payload"])
}

// The turns of a message outlive its text: the message that is sent again makes no further ones.
func TestCorrectedTurnsStandThoughTheTextOfTheirMessageHasExpired(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 2, "", always(`{"title":"Shop"}`))
	output := "I would call it Shop."
	k.deliver("m1", "Architect", output)
	k.expireText("m1")
	k.deliver("m1", "Architect", output)
	require.EqualValues(t, 1, k.asked.Load())
	require.EqualValues(t, 1, k.entered.Load())
	require.Equal(t, true, k.responseOf("m1~1")["success"])
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
	require.Empty(t, k.deadReasons())
}

func TestNextWorkerContinuesACorrection(t *testing.T) {
	t.Parallel()
	message := subjects.MessageKey("app", "chat", "", "m1")
	for name, one := range map[string]struct {
		key   string
		asked int64
	}{
		"the call is not stored":   {message.WithCall("c1").Public(events.KindToolCall), 1},
		"the reply is not stored":  {message.WithCall("c1").Public(events.KindToolResponse), 2},
		"its turn is not claimed":  {subjects.TurnKey("app", "chat", "", "m1~1").Public(events.KindToolCall), 1},
		"the second is not stored": {message.WithCall("c2").Public(events.KindToolResponse), 3},
	} {
		for _, resumed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " resumed ", resumed), func(t *testing.T) {
				t.Parallel()
				second := strings.Contains(name, "second")
				k := newCorrectionKit(t, 2, "", func(n int64, w io.Writer) {
					_, _ = io.WriteString(w, completed(map[bool]string{true: `{}`, false: `{"title":"Shop"}`}[second && n == 1], "stop"))
				})
				ctx, die := context.WithCancel(t.Context())
				store := &dying{k.store, one.key, die}
				k.Journal = idempotency.New(store, "w", idempotency.Options{})
				m := k.writes("m1", "Architect", `{"name":"Shop"}`)
				m.Held = ctx
				require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
				require.Zero(t, k.entered.Load())
				store.die = nil
				next := again(m)
				next.Held = t.Context()
				if resumed {
					body, err := events.EncodeResume(&events.Resume{TurnID: events.TurnID{App: "app", Chat: "chat"}, Workflow: "WF", Key: message.String(), Message: true}, m.Stored)
					require.NoError(t, err)
					next.Subject, next.Data, next.Lease.Seq = k.space.In("default", events.KindResume, "app", "WF", "chat"), body, 99
				}
				k.handled(next)
				require.Equal(t, one.asked, k.asked.Load())
				require.EqualValues(t, 1, k.entered.Load())
				last := "m1~1"
				if second {
					last = "m1~2"
				}
				require.Equal(t, true, k.responseOf(last)["success"])
				require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
			})
		}
	}
}

func TestWorkerThatStopsDoesNotWaitForACorrection(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"Architect", "Critic"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			ctx, drain := context.WithCancelCause(t.Context())
			stopped := make(chan struct{})
			k := newCorrectionKit(t, 1, "", func(n int64, w io.Writer) {
				if n == 1 {
					drain(handlers.ErrDraining)
					<-stopped
				}
				_, _ = io.WriteString(w, completed(`{"title":"Shop"}`, "stop"))
			})
			m := k.writes("m1", agent, `{"name":"Shop"}`)
			require.Equal(t, inbound.NakAfter(0), k.Handle(ctx, m))
			require.Nil(t, k.of("m1", "handoff"))
			close(stopped)
			k.handled(again(m))
			require.EqualValues(t, 2, k.asked.Load())
			require.NotNil(t, k.of("m1", "handoff"))
		})
	}
}

func TestSilentWorkflowRespondsToWhatIsCorrected(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 1, "compat: {silent: true}\n", always(`{}`))
	k.deliver("m1", "Architect", `{"name":"Shop"}`)
	require.Equal(t, true, k.responseOf("m1")["correcting"])
	require.Equal(t, "validation_failed", k.responseOf("m1~1")["code"])
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}

func TestTurnOfAProducerUnderTheKeyOfACorrectionStands(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 1, "", always(`{"title":"Shop"}`))
	k.deliver("m1~1", "Architect", `{"title":"Another"}`)
	m := k.deliver("m1", "Architect", `{"name":"Shop"}`)
	k.handled(again(m))
	require.EqualValues(t, 1, k.entered.Load())
	require.Equal(t, map[string]any{"title": "Another"}, *k.built.Load())
	require.NotNil(t, k.of("m1", "handoff"))
}

func TestOutputThatItsProducerHasPublishedAsATurnIsNotCorrected(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 1, "", always(`{"title":"Shop"}`))
	event := k.writes("event", "Architect", "")
	body, err := events.EncodeTurn(&events.StructuredOutputReady{
		TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "m1"}, Workflow: "WF", Agent: "Architect", Model: "Plan",
		Data: map[string]any{"name": "Shop"}, AutoToolMode: true,
	}, event.Stored)
	require.NoError(t, err)
	event.Subject, event.Data = k.space.In("default", events.KindStructuredOutputReady, "app", "WF", "chat"), body
	k.handled(event)
	k.deliver("m1", "Architect", `{"name":"Shop"}`)
	require.Nil(t, k.responseOf("m1")["correcting"])
	require.Zero(t, k.asked.Load())
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}

func TestHandoffFollowsACorrectionThatWasParked(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 1, "", always(`{"title":"Shop"}`))
	others := k.Tool
	k.Tool = func(b *bindings.Binding) (tools.Invoker, error) {
		if b.Kind == bindings.KindAgent {
			return others(b)
		}
		return toolFunc(func(ctx context.Context, call *tools.Call) (tools.Result, error) {
			_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
			return tools.Result{}, err
		}), nil
	}
	k.Drain() // a tool that asks is parked immediately
	k.deliver("m1", "Architect", `{"name":"Shop"}`)
	require.Equal(t, true, k.responseOf("m1")["correcting"])
	require.Nil(t, k.responseOf("m1~1"))
	require.Nil(t, k.of("m1", "handoff"))
	k.kit.handled(k.answers(100, events.QuestionID("m1~1", "sure"), true))
	require.Equal(t, true, k.responseOf("m1~1")["success"])
	require.Equal(t, usage(1), k.responseOf("m1~1")["usage"])
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}

func TestCorrectionThatNoModelWasAskedForIsNotAskedForLater(t *testing.T) {
	t.Parallel()
	k := newCorrectionKit(t, 1, "", always(`{"title":"Shop"}`))
	with := k.Bindings
	without := newCorrectionKit(t, 0, "", always("")).Bindings
	message := subjects.MessageKey("app", "chat", "", "m1")
	store := &dying{Memory: k.store}
	k.Journal = idempotency.New(store, "w", idempotency.Options{})
	m := k.writes("m1", "Architect", `{"name":"Shop"}`)
	dies := func(key string) {
		ctx, die := context.WithCancel(t.Context())
		store.key, store.die = key, die
		m = again(m)
		m.Held = ctx
		require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
		store.die = nil
	}
	dies(message.WithCall("c1").Public(events.KindToolCall))
	k.Bindings = without
	dies(message.Public(events.KindHandoff))
	require.Equal(t, "unknown_tool", k.responseOf("m1~1")["code"])
	k.Bindings = with
	m = again(m)
	m.Held = t.Context()
	k.handled(m)
	require.Zero(t, k.asked.Load())
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
	require.Empty(t, k.deadReasons())
}
