package handlers_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// The former owner of the turn receives the answer while the next one waits for it, so that the tool of the step must not continue there.
func TestStepWhoseAnswerAnEarlierRunHasReceivedEndsAsItsRecordsHaveIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effect string // that the tool has for the next owner
		ends   bool   // the former owner stores the response of the step
		code   events.Code
	}{
		"as a success of the former owner":             {effect: "replay", ends: true},
		"as interrupted":                               {effect: "replay", code: events.CodeInterrupted},
		"as interrupted, under the effect of its call": {effect: "keyed", code: events.CodeInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := make(chan struct{}, 2)
			k := newProgramKit(t, map[string]toolFunc{"two": echo, "ask": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				in <- struct{}{}
				_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
				return tools.Result{Value: []byte(`{"id":"next"}`)}, err
			}})
			k.ParkAfter = time.Hour
			plan := `{"type": "tool_calls", "calls": [{"tool_name": "ask", "arguments": {"id": "x"}}, {"tool_name": "two", "arguments": {"id": "y"}}]}`
			held, lose := context.WithCancel(t.Context())
			former, over := k.plan("A", plan, 1), make(chan inbound.Disposition, 1)
			former.Held = held
			go func() { over <- k.Handle(t.Context(), former) }()
			<-in
			require.Eventually(t, func() bool {
				return slices.ContainsFunc(k.names(), func(name string) bool { return strings.HasSuffix(name, ".ask.sure") })
			}, 10*time.Second, time.Millisecond)
			lose()
			require.NotEqual(t, inbound.Ack, (<-over).Do)
			set := loadPrograms(t, strings.ReplaceAll(programWorkflow, "effect: replay", "effect: "+c.effect))
			k.Bindings = func() *bindings.Set { return set }
			go func() { over <- k.Handle(t.Context(), k.plan("A", plan, 2)) }()
			<-in
			key := subjects.TurnKey("app", "chat", "", "turn").WithCall(subjects.StepCall("0"))
			called, err := k.store.Last(t.Context(), key.Public(events.RecordCall))
			require.NoError(t, err)
			meta := idempotency.Meta{Nonce: called.Meta.Nonce, Epoch: 1, Claim: called.Meta.Claim}
			_, err = k.store.Create(t.Context(), idempotency.Record{Key: key.Private(events.RecordTaken, subjects.Token("sure")), Meta: meta})
			require.NoError(t, err)
			if c.ends {
				event, err := events.AppendToolResponse(nil, &events.ToolResponse{
					AppID: "app", ChatID: "chat", ToolCallID: "turn#0", ToolName: "ask", Status: events.StatusOK, Success: true, Payload: map[string]any{"id": "former"},
				}, time.Now())
				require.NoError(t, err)
				_, err = k.store.Create(t.Context(), idempotency.Record{Key: key.Public(events.RecordResponse), Meta: meta, Data: event})
				require.NoError(t, err)
			}
			meta.Outcome = string(idempotency.Answered)
			_, err = k.store.Create(t.Context(), idempotency.Record{Key: key.Private(events.RecordAnswer, subjects.Token("sure")), Meta: meta, Data: []byte(`"yes"`)})
			require.NoError(t, err)
			k.PollQuestions()
			require.Equal(t, inbound.Ack, (<-over).Do)
			require.Equal(t, c.code, k.response().Code, "%v", k.response())
			step, err := k.store.Last(t.Context(), key.Public(events.RecordResponse))
			require.NoError(t, err)
			m, err := events.Parse(step.Data)
			require.NoError(t, err)
			if c.code != "" {
				require.Contains(t, m.Data["content"], "an earlier run of the tool has received the answer")
			}
		})
	}
}
