package handlers_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tools"
)

// broken is a store whose reads panic.
type broken struct{ idempotency.Store }

func (broken) Scan(context.Context, subjects.Key) ([]idempotency.Record, error) {
	panic("a fault of ours")
}

func TestLiveCopyOfACancelThatPanicsEndsNoWorker(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.Journal = idempotency.New(broken{k.store}, "w", idempotency.Options{})
	var log bytes.Buffer
	k.Logger = slog.New(slog.NewTextHandler(&log, nil))
	body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF"}, time.Now())
	require.NoError(t, err)
	k.CancelWished(k.space.In("default", events.KindCancel, "app", "WF", "chat"), body)
	require.Contains(t, log.String(), "a fault of ours")
}

// desk is handlers that see the real inbound stream.
type desk struct {
	*kit

	entered int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{}
	d.kit = newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		d.entered++
		return tools.Result{}, nil
	}))
	d.Published, d.LeaseHeld = handlers.Published(d.js, d.space), handlers.LeaseHeld(d.js, d.space)
	return d
}

// send publishes a message and returns its first delivery.
func (d *desk) send(kind string, body []byte) *handlers.Message {
	d.t.Helper()
	m := d.message(0, 1)
	m.Subject, m.Data = d.space.In("default", kind, "app", "WF", "chat"), body
	ack, err := d.js.Publish(d.t.Context(), m.Subject, body)
	require.NoError(d.t, err)
	m.Lease.Stream, m.Lease.Seq = "ONETURN_IN", ack.Sequence
	return m
}

func (d *desk) sendTurn() *handlers.Message {
	return d.send(events.KindStructuredOutputReady, d.message(0, 1).Data)
}

func (d *desk) sendCancel() *handlers.Message {
	d.t.Helper()
	body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF"}, time.Now())
	require.NoError(d.t, err)
	return d.send(events.KindCancel, body)
}

// records is what the journal holds of the turn.
func (d *desk) records() *idempotency.Turn {
	d.t.Helper()
	held, err := d.Journal.Load(d.t.Context(), subjects.TurnKey("app", "chat", "", "turn"))
	require.NoError(d.t, err)
	return held
}

func TestCancelsOfTurnsThatNobodyPublishedFillNoJournal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	other, err := events.EncodeTurn(&events.StructuredOutputReady{
		TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "other"}, Workflow: "WF", Data: map[string]any{}, AutoToolMode: true,
	}, time.Now())
	require.NoError(t, err)
	d.send(events.KindStructuredOutputReady, other)
	m := d.sendCancel()
	require.Equal(t, handlers.Nak, d.Handle(t.Context(), m).Do, "it may have overtaken its turn")
	m.Lease.Delivery++
	require.Equal(t, handlers.Ack, d.Handle(t.Context(), m).Do)
	require.Empty(t, d.records().Records)

	turn := d.sendTurn() // published after the cancel: it was none of this turn
	require.Equal(t, handlers.Ack, d.Handle(t.Context(), turn).Do)
	require.Equal(t, 1, d.entered)
}

func TestCancelBeforeTheClaimEndsTheTurnWithoutItsTool(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	turn, m := d.sendTurn(), d.sendCancel()
	require.Equal(t, handlers.Ack, d.Handle(t.Context(), m).Do)
	require.Equal(t, events.CodeCancelled, d.response().Code)
	require.Equal(t, handlers.Ack, d.Handle(t.Context(), turn).Do)
	require.Zero(t, d.entered)
}

func TestCancelThatOvertakesItsTurnFindsItLater(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	m := d.sendCancel()
	require.Equal(t, handlers.Nak, d.Handle(t.Context(), m).Do)
	turn := d.sendTurn()
	m.Lease.Delivery++
	require.Equal(t, handlers.Ack, d.Handle(t.Context(), m).Do)
	require.Equal(t, handlers.Ack, d.Handle(t.Context(), turn).Do)
	require.Zero(t, d.entered)
}

func TestCancelOfAClaimedTurnIsStoredThoughItsMessageIsGone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, err := d.Journal.Claim(t.Context(), idempotency.Claim{
		Key: subjects.TurnKey("app", "chat", "", "turn"), Lease: idempotency.Lease{Stream: "ONETURN_IN", Seq: 99, Delivery: 1}, Effect: "unsafe",
	})
	require.NoError(t, err)
	require.Equal(t, handlers.Ack, d.Handle(t.Context(), d.sendCancel()).Do)
	require.NotNil(t, d.records().Cancel)
}

// TestCancelThatTheLeaderDoesNotKnowDecidesNothing: a leader that was one may not know the turn
// either.
func TestCancelThatTheLeaderDoesNotKnowDecidesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	m := d.sendCancel()
	m.Lease.Seq, m.Lease.Delivery = 77, 2
	require.Equal(t, handlers.Leave, d.Handle(t.Context(), m).Do)
}
