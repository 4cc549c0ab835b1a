package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// broken is a store whose reads panic.
type broken struct{ idempotency.Store }

func (broken) Scan(context.Context, subjects.Key, []idempotency.Record) ([]idempotency.Record, error) {
	panic("an injected panic")
}

func TestLiveCopyOfACancelThatPanicsEndsNoWorker(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.Journal = idempotency.New(broken{k.store}, "w", idempotency.Options{})
	var log bytes.Buffer
	k.Logger = slog.New(slog.NewTextHandler(&log, nil))
	body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF"}, time.Now())
	require.NoError(t, err)
	k.HandleCancelCopy(k.space.In("default", events.KindCancel, "app", "WF", "chat"), body)
	require.Contains(t, log.String(), "an injected panic")
}

func TestCancelThatNamesAQuestionCancelsItsTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ turn, run, body string }{
		"of a turn":                              {"turn", "", ""},
		"of a run that is named":                 {"turn", "run-1", `,"run_id":"run-1"`},
		"of a run that is not named":             {"turn", "run-1", ""},
		"of a turn whose key looks like its own": {"a/turn", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			a := k.asker(c.turn, c.run)
			a.ask("1")
			a.park("1")
			k.finds(nil, a.key)
			body := []byte(`{"kind":"cancel","app_id":"app","chat_id":"chat","workflow_name":"WF","tool_call_id":"` + a.question("1") + `"` + c.body + `}`)
			k.HandleCancelCopy(k.space.In("default", events.KindCancel, "app", "WF", "chat"), body)
			held, err := k.Journal.Load(t.Context(), a.key)
			require.NoError(t, err)
			require.NotNil(t, held.Cancel, "the live copy finds it too")
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.mail(2, events.KindCancel, body).Message).Do)
			require.Equal(t, idempotency.Cancelled, a.outcome("1"))
			require.Equal(t, a.callID(), a.ended().ToolCallID)
			require.Equal(t, events.CodeCancelled, a.ended().Code)
		})
	}
}

func TestCancelOfATurnWhoseKeyLooksLikeAQuestionIsThatTurns(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn/1", "")
	a.ask("1")
	a.park("1")
	body := []byte(`{"kind":"cancel","app_id":"app","chat_id":"chat","workflow_name":"WF","tool_call_id":"turn/1"}`)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.mail(2, events.KindCancel, body).Message).Do)
	require.Equal(t, events.CodeCancelled, a.ended().Code)
}

func TestCancelThatNamesAQuestionBeforeItIsAskedCancelsItsTurn(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"", "run-1"} {
		entered := make(chan struct{})
		k := newKit(t, toolFunc(func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
			close(entered)
			<-ctx.Done()
			return tools.Result{}, context.Cause(ctx)
		}))
		event := &events.StructuredOutputReady{
			TurnID: events.TurnID{App: "app", Chat: "chat", Run: run, Turn: "turn"}, Workflow: "WF", Agent: "A", Model: "M", Data: map[string]any{}, AutoToolMode: true,
		}
		data, err := events.EncodeTurn(event, time.Now())
		require.NoError(t, err)
		done := make(chan inbound.Disposition, 1)
		go func() { done <- k.Handle(t.Context(), k.mail(1, events.KindStructuredOutputReady, data).Message) }()
		<-entered
		key := subjects.TurnKey("app", "chat", run, "turn")
		body, err := json.Marshal(map[string]any{
			"kind": "cancel", "app_id": "app", "chat_id": "chat", "run_id": run, "workflow_name": "WF", "tool_call_id": events.CallID(event.TurnID, key.Turn) + "/1",
		})
		require.NoError(t, err)
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.mail(2, events.KindCancel, body).Message).Do)
		k.CancelSeen(key)
		require.Equal(t, inbound.Ack, (<-done).Do)
		require.Equal(t, events.CodeCancelled, (&asker{k: k, key: key}).ended().Code)
	}
}

// ended is the response of a turn.
func (a *asker) ended() events.ToolResponse {
	a.k.t.Helper()
	r, err := a.k.store.Last(a.k.t.Context(), a.key.Public(events.KindToolResponse))
	require.NoError(a.k.t, err)
	m, err := events.Parse(r.Data)
	require.NoError(a.k.t, err)
	var response events.ToolResponse
	require.NoError(a.k.t, m.As(&response))
	return response
}

// TestLiveCopyOfACancelReadsARunThatParks: under the race detector, the copy and the end of the run do not
// meet in an unguarded field.
func TestLiveCopyOfACancelReadsARunThatParks(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(func(ctx context.Context, c *tools.Call) (tools.Result, error) {
		_, err := c.Host.Ask(ctx, tools.Question{Name: "q"})
		return tools.Result{}, err
	}))
	c := k.Config
	c.ParkAfter = 20 * time.Millisecond
	h := handlers.New(c)
	key := subjects.TurnKey("app", "chat", "", "turn")
	ctx, stop := context.WithCancel(t.Context())
	var copies sync.WaitGroup
	copies.Go(func() {
		for ctx.Err() == nil {
			h.CancelSeen(key)
		}
	})
	require.Equal(t, inbound.Ack, h.Handle(t.Context(), k.message(1, 1)).Do)
	stop()
	copies.Wait()
}
