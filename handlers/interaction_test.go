package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

func TestToolWaitsInMemoryForTheAnswerAndItsSlotIsFree(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectReplay, asks("", ""), func(t *testing.T, o *bubble) {
		t.Helper()
		done := o.handle(o.turn())
		require.Equal(t, int32(1), o.slots.away.Load())
		require.Equal(t, 1, o.count("questions_open"))
		require.Zero(t, o.count("tools_in_flight"))
		pass(9 * time.Second)
		o.answer("1", "yes")
		pass(9 * time.Second)
		require.Equal(t, int32(1), o.slots.away.Load())
		o.answer("2", map[string]any{"n": json.Number("1")})
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.Zero(t, o.slots.away.Load())
		r := o.response()
		require.True(t, r.Success)
		require.Equal(t, []any{"yes", map[string]any{"n": json.Number("1")}}, r.Payload)
		require.Zero(t, r.DurationMS, "people's time is not the tool's")
		require.Equal(t, 2, o.count("questions_asked_total"))
		require.Zero(t, o.count("questions_open"))
		require.Zero(t, o.count("tools_in_flight"))
		require.Equal(t, 2, o.count("questions_closed_total", "answered"))
		complete := o.heard(events.KindRunComplete)
		require.Len(t, complete, 1, "it never parked")
		require.Equal(t, json.Number("1"), complete[0].data["status"])
	})
}

func TestQuestionHasAllThatAFrontendNeeds(t *testing.T) {
	t.Parallel()
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		_, err := call.Host.Ask(ctx, tools.Question{
			Name: "a/b", Payload: json.RawMessage(`{"title":"Plan?","display":"mine"}`), Schema: json.RawMessage(`{"type":"string"}`), Timeout: time.Hour,
		})
		return tools.Result{}, err
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		asked := time.Now()
		done := o.handle(o.turn())
		id := events.AskID("a/b", 0)
		q := o.record(events.RecordAsk, subjects.Token(id))
		want := map[string]any{
			"kind": "tool_call", "id": "turn/" + id, "tool_call_id": "turn/" + id, "call_id": "turn/" + id, "corr": "turn/" + id,
			"app_id": "app", "chat_id": "chat", "turn": "turn", "agent": "A", "user_id": "ada", "workflow_name": "WF",
			"tool_name": "t", "component_type": "Card", "display": "artifact", "display_type": "artifact", "interaction_type": "ui_tool",
			"awaiting_response": true,
			"answer": map[string]any{
				"subject": "oneturn.in.default.tool_call_response.app.WF.chat", "schema": map[string]any{"type": "string"},
				"expires_at": asked.Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"),
			},
			"payload": map[string]any{
				"title": "Plan?", "display": "artifact", "mode": "artifact", "agent_name": "A", "interaction_type": "ui_tool", "workflow_name": "WF",
			},
		}
		require.Equal(t, want, q)
		require.Len(t, o.scheduled, 1)
		require.Equal(t, o.key.String(), o.scheduled[0].Key)
		require.Equal(t, id, o.scheduled[0].Ask)
		require.Equal(t, "default", o.scheduled[0].Pool)
		require.True(t, asked.Add(time.Hour).Equal(o.scheduled[0].ExpiresAt))
		require.NotEqual(t, inbound.Nak, o.Handle(t.Context(), o.answers(id, json.Number("1"))).Do)
		pass(5 * time.Second)
		require.Equal(t, 1, o.count("questions_open"), "a number does not fit")
		o.answer(id, "yes")
		require.Equal(t, inbound.Ack, settled(t, done).Do)
	})
}

func TestComponentAndDisplayAreFoundSoThatNoQuestionIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asks               tools.Question
		component, display string
	}{
		"of the call":        {tools.Question{}, "Card", "artifact"},
		"as asked":           {tools.Question{Component: "Mine", Display: "view"}, "Mine", "view"},
		"by its component":   {tools.Question{Tool: "Card"}, "Card", "artifact"},
		"request for input":  {tools.Question{Input: true}, "UserInputRequest", "composer"},
		"hint of the tool's": {tools.Question{Tool: "x", Payload: json.RawMessage(`{"component_type":"Hint"}`)}, "Hint", "inline"},
		"nothing known":      {tools.Question{Tool: "Diagram"}, "Diagram", "inline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				_, err := call.Host.Ask(ctx, c.asks)
				return tools.Result{}, err
			}
			inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
				t.Helper()
				o.handle(o.turn())
				q := o.record(events.RecordAsk, "1")
				require.Equal(t, c.component, q["component_type"])
				require.Equal(t, c.display, q["display"])
				o.answer("1", true)
			})
		})
	}
}

func TestLostLiveCopyCostsSecondsNotTheAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *bubble) {
		t.Helper()
		begin := time.Now()
		done := o.handle(o.turn())
		pass(time.Hour)
		require.Equal(t, inbound.Ack, o.Handle(t.Context(), o.answers("1", "yes")).Do)
		require.Equal(t, inbound.Ack, (<-done).Do)
		require.Less(t, time.Since(begin), time.Hour+time.Minute+time.Second)
		require.Equal(t, []any{"yes"}, o.response().Payload)
	})
}

func TestWaitingRunReadsItsQuestionAfterAReconnect(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *bubble) {
		t.Helper()
		done := o.handle(o.turn())
		require.Equal(t, inbound.Ack, o.Handle(t.Context(), o.answers("1", "yes")).Do)
		o.PollQuestions()
		require.Equal(t, inbound.Ack, settled(t, done).Do)
	})
}

func TestExpiryReachesTheToolAndEndsTheTurnIfItIsNotCaught(t *testing.T) {
	t.Parallel()
	caught := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		_, err := call.Host.Ask(ctx, tools.Question{Timeout: time.Minute})
		if !errors.Is(err, events.ErrExpired) {
			return tools.Result{}, err
		}
		return tools.Result{Value: json.RawMessage(`"continued"`)}, nil
	}
	expire := func(t *testing.T, o *bubble) {
		t.Helper()
		pass(time.Minute)
		body, err := events.EncodeExpire(o.scheduled[0], time.Now())
		require.NoError(t, err)
		require.Equal(t, inbound.Ack, o.Handle(t.Context(), o.message(events.KindExpire, body)).Do)
		o.PollQuestions()
		synctest.Wait()
	}
	inBubble(t, bindings.EffectUnsafe, caught, func(t *testing.T, o *bubble) {
		t.Helper()
		done := o.handle(o.turn())
		expire(t, o)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.Equal(t, "continued", o.response().Payload)
		require.Equal(t, 1, o.count("questions_closed_total", "expired"))
	})
	inBubble(t, bindings.EffectReplay, asks(""), func(t *testing.T, o *bubble) {
		t.Helper()
		o.handle(o.turn())
		pass(time.Minute)
		require.True(t, o.parked())
		expire2 := *o.scheduled[0]
		expire2.Forced = true
		body, err := events.EncodeExpire(&expire2, time.Now())
		require.NoError(t, err)
		require.Equal(t, inbound.Ack, o.Handle(t.Context(), o.message(events.KindExpire, body)).Do, "it resumes the turn")
		require.Equal(t, events.CodeExpired, o.response().Code)
	})
}

func TestSecondAttemptAsksTheSameQuestions(t *testing.T) {
	t.Parallel()
	attempts := 0
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		attempts++
		a, err := call.Host.Ask(ctx, tools.Question{})
		if err == nil && attempts == 1 {
			err = tools.Retryable(errors.New("the API is busy"))
		}
		return tools.Result{Value: a.Value}, err
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		done := o.handle(o.turn())
		o.answer("1", "yes")
		require.Equal(t, inbound.Ack, (<-done).Do)
		require.Equal(t, 2, attempts)
		require.Equal(t, "yes", o.response().Payload)
	})
}

func TestToolGetsAnErrorForAnInvalidQuestion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask  func(ctx context.Context, d tools.Host) error
		code events.Code
		text string
	}{
		"payload is not an object": {func(ctx context.Context, d tools.Host) error {
			_, err := d.Ask(ctx, tools.Question{Payload: json.RawMessage(`[]`)})
			return err
		}, events.CodeBadArgs, "show an object"},
		"schema is none": {func(ctx context.Context, d tools.Host) error {
			_, err := d.Ask(ctx, tools.Question{Schema: json.RawMessage(`{"type":7}`)})
			return err
		}, events.CodeToolError, "schema"},
		"large schema": {func(ctx context.Context, d tools.Host) error {
			_, err := d.Ask(ctx, tools.Question{Schema: json.RawMessage(`"` + strings.Repeat("x", 70_000) + `"`)})
			return err
		}, events.CodeTooLarge, "schema"},
		"name given twice": {func(ctx context.Context, d tools.Host) error {
			_, err := d.Show(ctx, tools.Surface{Name: "x"})
			if err == nil {
				_, err = d.Show(ctx, tools.Surface{Name: "x"})
			}
			return err
		}, events.CodeToolError, "duplicate name"},
		"dismisses what is not its own": {func(ctx context.Context, d tools.Host) error {
			return d.Dismiss(ctx, "other/s1")
		}, events.CodeToolError, "use the id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				err := c.ask(ctx, call.Host)
				if ctx.Err() != nil {
					t.Error("a mistake does not end the run")
				}
				return tools.Result{}, err
			}
			inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
				t.Helper()
				require.Equal(t, inbound.Ack, settled(t, o.handle(o.turn())).Do)
				require.Equal(t, c.code, o.response().Code)
				require.Contains(t, o.response().Content, c.text)
			})
		})
	}
}

func TestSurfacesAreShownOnceAndDismissed(t *testing.T) {
	t.Parallel()
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		first, err := call.Host.Show(ctx, tools.Surface{Tool: "Chart", Payload: json.RawMessage(`{"x":1}`)})
		second, err2 := call.Host.Show(ctx, tools.Surface{Tool: "Table", Name: "rows"})
		a, err3 := call.Host.Ask(ctx, tools.Question{})
		err = errors.Join(err, err2, err3)
		if err == nil {
			err = errors.Join(call.Host.Dismiss(ctx, first), call.Host.Dismiss(ctx, first), call.Host.Dismiss(ctx, a.ID))
		}
		return tools.Result{Value: json.RawMessage(fmt.Sprintf("[%q,%q,%q]", first, second, a.ID))}, err
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		o.handle(o.turn())
		pass(time.Minute)
		require.True(t, o.parked())
		o.answer("1", "yes")
		require.Equal(t, []any{"turn/s1", "turn/s:rows", "turn/1"}, o.response().Payload)
		chart := o.record(events.RecordShow, "s1")
		require.Equal(t, events.InteractionUISurface, chart["interaction_type"])
		require.Equal(t, false, chart["awaiting_response"])
		require.Equal(t, "Chart", chart["component_type"])
		require.NotContains(t, chart, "answer")
		require.Equal(t, "Chart", o.record(events.RecordDismiss, "s1")["tool_name"])
		require.Equal(t, "turn/1", o.record(events.RecordDismiss, "1")["tool_call_id"])
		require.Equal(t, "Table", o.record(events.RecordShow, subjects.Token("s:rows"))["tool_name"])
	})
}

func TestProgressIsThrottledAndTheLastOneIsPublished(t *testing.T) {
	t.Parallel()
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		for i := range 1001 {
			if err := call.Host.Progress(ctx, tools.Progress{Percent: float64(i) / 10, Message: "working"}); err != nil {
				return tools.Result{}, err
			}
			if i < 1000 {
				<-time.After(2 * time.Millisecond)
			}
		}
		return tools.Result{}, nil
	}
	inBubble(t, bindings.EffectUnsafe, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		require.Equal(t, inbound.Ack, (<-o.handle(o.turn())).Do)
		words := o.heard(events.KindToolProgress)
		require.InDelta(t, 11, len(words), 1)
		require.Equal(t, json.Number("100"), words[len(words)-1].data["progress_percent"])
		require.Equal(t, "turn", words[0].data["corr"])
		require.Equal(t, "t", words[0].data["tool_name"])
		for i := range len(words) - 2 {
			require.GreaterOrEqual(t, words[i+1].at-words[i].at, 200*time.Millisecond)
		}
		require.Empty(t, o.heard(events.KindRunComplete), "it has not asked")
	})
}

func TestStepThatIsDoneIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	charged := 0
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		result, done, err := call.Host.StepResult(ctx, "charge")
		if err == nil && !done {
			charged++
			result, err = call.Host.StoreStep(ctx, "charge", json.RawMessage(`"paid"`))
		}
		if err != nil {
			return tools.Result{}, err
		}
		a, err := call.Host.Ask(ctx, tools.Question{})
		return tools.Result{Value: json.RawMessage(`[` + string(result) + `,` + string(a.Value) + `]`)}, err
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		o.handle(o.turn())
		pass(time.Minute)
		o.answer("1", "yes")
		require.Equal(t, []any{"paid", "yes"}, o.response().Payload)
		require.Equal(t, 1, charged)
	})
}

func TestCancelReachesAToolThatWaits(t *testing.T) {
	t.Parallel()
	cancel := func(t *testing.T, o *bubble) {
		t.Helper()
		require.NoError(t, o.Journal.Cancel(t.Context(), idempotency.Claim{Key: o.key}, []byte(`{}`)))
	}
	inBubble(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *bubble) { // immediately
		t.Helper()
		done := o.handle(o.turn())
		cancel(t, o)
		o.CancelSeen(o.key)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.Equal(t, events.CodeCancelled, o.response().Code)
	})
	inBubble(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *bubble) { // its live copy is lost
		t.Helper()
		done := o.handle(o.turn())
		cancel(t, o)
		require.Equal(t, inbound.Ack, (<-done).Do)
		require.Equal(t, events.CodeCancelled, o.response().Code)
	})
}

func TestOtherQuestionsInALaterRunEndTheTurnWithTheReason(t *testing.T) {
	t.Parallel()
	runs := 0
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		runs++
		_, err := call.Host.Ask(ctx, tools.Question{Tool: map[int]string{1: "Plan", 2: "Key"}[runs], Payload: json.RawMessage(`{"run":` + map[int]string{1: "1", 2: "2"}[runs] + `}`)})
		return tools.Result{Value: json.RawMessage(`"swallowed"`)}, map[bool]error{true: err}[runs == 1]
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		o.handle(o.turn())
		pass(time.Minute)
		o.answer("1", "yes")
		require.Equal(t, 2, runs)
		require.Equal(t, events.CodeToolError, o.response().Code)
		require.Contains(t, o.response().Content, "asked before with other content")
	})
}
