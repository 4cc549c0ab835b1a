package handlers_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// deploy is a worker of the kit whose manifests bind the agent of its turn to one tool, and the
// names of the tools that it has entered.
type deploy struct {
	*handlers.Handlers

	entered []string
}

func (k *kit) deploy(workflow, tool string, effect bindings.Effect) *deploy {
	k.t.Helper()
	set, err := bindings.Load(k.t.Context(), bindings.Options{Declared: []bindings.Declaration{
		{Workflow: workflow, Agent: "A", Model: "M", Tool: tool, Schema: json.RawMessage(`{"type":"object"}`), Effect: effect},
	}})
	require.NoError(k.t, err)
	d := &deploy{}
	c := k.Config
	c.Bindings = func() *bindings.Set { return set }
	c.Tool = func(*bindings.Binding) (tools.Invoker, error) {
		return toolFunc(func(_ context.Context, call *tools.Call) (tools.Result, error) {
			d.entered = append(d.entered, call.Name)
			return tools.Result{Value: jsonText(call.Args)}, nil
		}), nil
	}
	d.Handlers = handlers.New(c)
	return d
}

func jsonText(v any) json.RawMessage {
	data, _ := json.Marshal(v) //nolint:errchkjson // a value of the test
	return data
}

// orphaned stores the claim of a worker that has died before it stored anything else: tool t of
// workflow WF, with arguments that no message holds any more.
func (k *kit) orphaned(effect string) {
	k.t.Helper()
	body, err := events.DecodeTurn(k.message(1, 1).Data)
	require.NoError(k.t, err)
	event, err := events.Encode(events.KindToolCall, &events.ToolCall{
		AppID: "app", ChatID: "chat", Turn: "turn", ToolCallID: "turn", WorkflowName: "WF", Agent: "A", ToolName: "t",
		Payload: events.ToolCallPayload{ToolArgs: map[string]any{"as": "claimed"}},
	}, time.Now())
	require.NoError(k.t, err)
	d, err := k.Journal.Claim(k.t.Context(), idempotency.Claim{
		Key: subjects.TurnKey("app", "chat", "", "turn"), Lease: k.message(1, 1).Lease, Effect: effect, Event: event,
		Fingerprint: events.Hex(events.Fingerprint(body)),
	})
	require.NoError(k.t, err)
	require.Equal(k.t, idempotency.Run, d.Action)
}

// takeoverMessages are the messages that can take the turn of an orphaned claim over.
func (k *kit) takeoverMessages() map[string]func(delivery uint64) *inbound.Message {
	k.LeaseHeld = func(context.Context, idempotency.Lease) (bool, error) { return false, nil }
	return map[string]func(delivery uint64) *inbound.Message{
		"its own message": func(delivery uint64) *inbound.Message { return k.message(1, delivery+1) },
		"a resume": func(delivery uint64) *inbound.Message {
			body, err := events.EncodeResume(&events.Resume{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF"}, time.Now())
			require.NoError(k.t, err)
			m := k.message(9, delivery)
			m.Subject, m.Data = k.space.In("default", events.KindResume, "app", "WF", "chat"), body
			return m
		},
	}
}

// TestTakeoverRunsWhatTheClaimNames: whatever the manifests of the next worker bind to the message.
func TestTakeoverRunsWhatTheClaimNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claimed string
		tool    string
		effect  bindings.Effect
		code    events.Code // "" for one that runs again
	}{
		"the same tool":                          {"idempotent", "t", bindings.EffectIdempotent, ""},
		"the tool with an effect that is looser": {"keyed", "t", bindings.EffectNone, ""},
		"the tool, unsafe now":                   {"idempotent", "t", bindings.EffectUnsafe, events.CodeInterrupted},
		"the tool, replay now, nothing asked":    {"keyed", "t", bindings.EffectReplay, events.CodeInterrupted},
		"another tool, unsafe":                   {"idempotent", "pay", bindings.EffectUnsafe, events.CodeUnknownTool},
		"another tool, idempotent":               {"idempotent", "look", bindings.EffectIdempotent, events.CodeUnknownTool},
		"another tool after an unsafe one":       {"unsafe", "look", bindings.EffectIdempotent, events.CodeInterrupted},
	} {
		for _, by := range []string{"its own message", "a resume"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				k := newKit(t, toolFunc(nothing))
				k.orphaned(c.claimed)
				m := k.takeoverMessages()[by]
				next := k.deploy("WF", c.tool, c.effect)
				require.Equal(t, inbound.Ack, next.Handle(t.Context(), m(1)).Do)
				r := k.response()
				require.Equal(t, "t", r.ToolName, "the response is from the tool that the call names")
				require.Equal(t, c.code, r.Code)
				if c.code != "" {
					require.Empty(t, next.entered)
					return
				}
				require.Equal(t, []string{"t"}, next.entered)
				require.Equal(t, map[string]any{"as": "claimed"}, r.Payload, "the arguments are from the claim")
			})
		}
	}
}

// TestClaimedTurnOfAnUnknownWorkflowIsLeftToAWorkerThatKnowsIt: for as long as the turn may live.
func TestClaimedTurnOfAnUnknownWorkflowIsLeftToAWorkerThatKnowsIt(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"its own message", "a resume"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			k.orphaned("idempotent")
			m := k.takeoverMessages()[by]
			other := k.deploy("Other", "t", bindings.EffectIdempotent)
			stored, err := k.Journal.Load(t.Context(), subjects.TurnKey("app", "chat", "", "turn"))
			require.NoError(t, err)
			for n, age := range []time.Duration{0, 2 * k.BindingGrace, k.MaxEventAge - time.Minute, k.MaxEventAge + time.Minute} {
				offered := m(uint64(n + 1))
				offered.Stored = time.Now().Add(-age)
				d := other.Handle(t.Context(), offered)
				require.Equal(t, inbound.Nak, d.Do, "offered %s after it was published", age)
				require.Positive(t, d.Delay)
			}
			again, err := k.Journal.Load(t.Context(), stored.Key)
			require.NoError(t, err)
			require.Len(t, again.Records, len(stored.Records), "a worker that cannot run the turn stores nothing")
			next := k.deploy("WF", "t", bindings.EffectIdempotent)
			require.Equal(t, inbound.Ack, next.Handle(t.Context(), m(9)).Do)
			require.True(t, k.response().Success)
		})
	}
}

// TestClaimedTurnThatNeedsNoToolEndsOnAnyWorker: a worker without its workflow can end it too.
func TestClaimedTurnThatNeedsNoToolEndsOnAnyWorker(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.orphaned("unsafe")
	other := k.deploy("Other", "t", bindings.EffectIdempotent)
	m := k.message(1, 2)
	m.Stored = time.Now().Add(-2 * k.BindingGrace)
	require.Equal(t, inbound.Ack, other.Handle(t.Context(), m).Do)
	require.Equal(t, events.CodeInterrupted, k.response().Code)
	require.Empty(t, other.entered)
}
