package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/turntest"
)

// broom is a sweep on a real server.
type broom struct {
	*handlers.Sweep

	t  *testing.T
	nc *nats.Conn
}

func newBroom(t *testing.T) *broom {
	t.Helper()
	s := turntest.NewServer(t)
	s.Provision()
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	store, err := idempotency.NewKV(nc, space)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return &broom{t: t, nc: nc, Sweep: &handlers.Sweep{
		Space: space, JS: js, Store: store, LeaseHeld: handlers.LeaseHeld(js, space), AckWait: time.Second,
		Rate: handlers.SweepRate, Logger: slog.New(slog.DiscardHandler),
	}}
}

// orphans stores n claims whose message is gone.
func (b *broom) orphans(n int) {
	b.t.Helper()
	for i := range n {
		id := events.TurnID{App: "app", Chat: "chat", Turn: strconv.Itoa(i)}
		key := subjects.TurnKey(id.App, id.Chat, "", id.Turn)
		body, err := events.Encode(events.KindToolCall, &events.ToolCall{
			ID: id.Turn, AppID: id.App, ChatID: id.Chat, Turn: id.Turn, WorkflowName: "WF", Agent: "A", ToolName: "t",
		}, time.Now())
		require.NoError(b.t, err)
		_, err = b.Store.Create(b.t.Context(), idempotency.Record{Key: key.Public(events.KindToolCall), Data: body, Meta: idempotency.Meta{
			Owner: "dead worker", Nonce: "n", Epoch: 1, Effect: "unsafe", Lease: idempotency.Lease{Stream: "ONETURN_IN", Seq: 4711, Delivery: 1},
		}})
		require.NoError(b.t, err)
	}
}

// later is a time at which every turn of the test is old enough.
func later() time.Time { return time.Now().Add(time.Minute) }

func ExampleCondition_Mend() {
	for _, c := range []handlers.Condition{handlers.TurnHeld, handlers.TurnParked, handlers.TurnOrphaned, handlers.TurnExpired} {
		fmt.Println(c, c.Mend())
	}
	// Output:
	// held false
	// parked false
	// orphaned true
	// expired true
}

func TestSweepThatEndsInTheMiddleIsRepeatedFromTheSameState(t *testing.T) {
	t.Parallel()
	b := newBroom(t)
	b.orphans(5)
	ctx, crash := context.WithCancelCause(t.Context())
	errCrash := errors.New("crash")
	found := 0
	_, err := b.Run(ctx, handlers.SweepState{}, later(), handlers.Scope{}, func(ctx context.Context, f handlers.Finding) error {
		if found++; found == 3 {
			crash(errCrash)
		}
		_, err := b.Resume(ctx, f)
		return err
	})
	require.ErrorIs(t, err, errCrash)
	swept, err := b.Run(t.Context(), handlers.SweepState{}, later(), handlers.Scope{}, func(ctx context.Context, f handlers.Finding) error {
		_, err := b.Resume(ctx, f)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, handlers.Swept{Headers: 5, Open: 5, Mended: 5, Oldest: swept.Oldest, Next: swept.Next}, swept)
	require.Equal(t, uint64(6), swept.Next.From)
	require.Len(t, swept.Next.Open, 5)

	// A second resume finds the first one's response, so that repeating is harmless.
	again, err := b.Run(t.Context(), swept.Next, later(), handlers.Scope{}, func(context.Context, handlers.Finding) error { return nil })
	require.NoError(t, err)
	require.Zero(t, again.Headers, "the journal is read once")
	require.Equal(t, 5, again.Mended)
}

func TestSweepOfAJournalThatTheStateDoesNotFitBeginsAnew(t *testing.T) {
	t.Parallel()
	b := newBroom(t)
	b.orphans(1)
	swept, err := b.Run(t.Context(), handlers.SweepState{From: 1000}, later(), handlers.Scope{}, func(context.Context, handlers.Finding) error { return nil })
	require.NoError(t, err)
	require.Equal(t, 1, swept.Mended)
	require.Equal(t, uint64(2), swept.Next.From)
}

func TestSweepStaysInItsScopeAndGivesUpOnAServerThatFails(t *testing.T) {
	t.Parallel()
	b := newBroom(t)
	b.orphans(12)
	none := func(context.Context, handlers.Finding) error { return nil }
	for scope, want := range map[handlers.Scope]int{
		{App: "app"}: 12, {Chat: "chat"}: 12, {App: "app", Chat: "chat"}: 12, {App: "other"}: 0, {Chat: "other"}: 0,
	} {
		swept, err := b.Run(t.Context(), handlers.SweepState{}, later(), scope, none)
		require.NoError(t, err)
		require.Equal(t, want, swept.Mended, "%+v", scope)
	}
	errFull := errors.New("the stream is full")
	calls := 0
	_, err := b.Run(t.Context(), handlers.SweepState{}, later(), handlers.Scope{}, func(context.Context, handlers.Finding) error {
		calls++
		return errFull
	})
	require.ErrorIs(t, err, errFull)
	require.Equal(t, 10, calls)
}

// timers are those of a worker on the broom's server.
func (b *broom) timers(interval time.Duration) *handlers.Timers {
	b.t.Helper()
	registry := prometheus.NewRegistry()
	metrics, err := handlers.NewMetrics(registry)
	require.NoError(b.t, err)
	sweeps, err := handlers.NewSweepMetrics(registry)
	require.NoError(b.t, err)
	blobs, err := handlers.NewBlobs(b.t.Context(), b.nc, b.JS, b.Space)
	require.NoError(b.t, err)
	return &handlers.Timers{
		Sweep: b.Sweep, Dead: handlers.NewDeadLetters(b.JS, b.Space, blobs), Metrics: metrics, Sweeps: sweeps, Interval: interval,
	}
}

func (b *broom) due() *handlers.Message {
	b.t.Helper()
	const body = `{"from":0}`
	ack, err := b.JS.Publish(b.t.Context(), b.Space.SweepDue(), []byte(body))
	require.NoError(b.t, err)
	return &handlers.Message{
		Subject: b.Space.SweepDue(), Data: []byte(body), Stored: later(), Held: b.t.Context(), Fresh: func() bool { return true },
		Lease: idempotency.Lease{Stream: b.Space.TimersStream(), Seq: ack.Sequence, Delivery: 1},
	}
}

func TestOfTwoSweepsThatAreDueTheOlderGoesOn(t *testing.T) {
	t.Parallel()
	b := newBroom(t)
	b.orphans(1)
	timers := b.timers(time.Hour)
	first, second := b.due(), b.due()
	require.Equal(t, handlers.Ack, timers.Handle(t.Context(), second).Do)
	in, err := b.JS.Stream(t.Context(), b.Space.InStream())
	require.NoError(t, err)
	require.Zero(t, in.CachedInfo().State.Msgs, "the younger does nothing")
	require.Equal(t, handlers.Ack, timers.Handle(t.Context(), first).Do)
	in, err = b.JS.Stream(t.Context(), b.Space.InStream())
	require.NoError(t, err)
	require.Equal(t, uint64(1), in.CachedInfo().State.Msgs)
}

func TestSweepThatStopsIsGivenBackAndOneThatLostItsLeaseIsLeft(t *testing.T) {
	t.Parallel()
	b := newBroom(t)
	b.orphans(1)
	timers := b.timers(time.Hour)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	m := b.due()
	require.Equal(t, handlers.Nak, timers.Handle(stopped, m).Do)
	m.Held = stopped
	require.Equal(t, handlers.Leave, timers.Handle(t.Context(), m).Do)
	m.Held = t.Context()
	require.Equal(t, handlers.Ack, timers.Handle(t.Context(), m).Do)
}

func TestScheduleIsMadeOnceAndReplacedByTheSweepThatEnds(t *testing.T) {
	t.Parallel()
	b := newBroom(t)
	timers := b.timers(time.Hour)
	stream, err := b.JS.Stream(t.Context(), b.Space.TimersStream())
	require.NoError(t, err)
	scheduled := func() string {
		m, err := stream.GetLastMsgForSubject(t.Context(), b.Space.SweepTimer())
		require.NoError(t, err)
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(b.Space.SweepTimer()))
		require.NoError(t, err)
		require.Equal(t, map[string]uint64{b.Space.SweepTimer(): 1}, info.State.Subjects)
		return string(m.Data)
	}
	for range 3 {
		require.NoError(t, timers.Ensure(t.Context()))
		require.JSONEq(t, `{"from":0}`, scheduled())
	}
	b.orphans(1)
	require.Equal(t, handlers.Ack, timers.Handle(t.Context(), b.due()).Do)
	require.JSONEq(t, `{"from":2,"open":[{"key":"app.chat.0-0.0","seq":1}]}`, scheduled())
}
