package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// testSweep is a sweep on a real server.
type testSweep struct {
	*sweep.Sweep

	t  *testing.T
	nc *nats.Conn
}

func newTestSweep(t *testing.T) *testSweep {
	t.Helper()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	s.Provision()
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	store, err := kvstore.Open(nc, space)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return &testSweep{t: t, nc: nc, Sweep: &sweep.Sweep{
		Space: space, JS: js, Store: store, LeaseHeld: sweep.LeaseHeld(js, space), AckWait: time.Second,
		Rate: sweep.Rate, Logger: slog.New(slog.DiscardHandler),
	}}
}

// orphans stores n claims whose message is gone.
func (b *testSweep) orphans(n int) {
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

func ExampleCondition_NeedsResume() {
	for _, c := range []sweep.Condition{sweep.TurnHeld, sweep.TurnParked, sweep.TurnOrphaned, sweep.TurnExpired} {
		fmt.Println(c, c.NeedsResume())
	}
	// Output:
	// held false
	// parked false
	// orphaned true
	// expired true
}

// pages opens the pages on the server of the test.
func (b *testSweep) pages() *sweep.KVPages {
	b.t.Helper()
	pages, err := sweep.OpenPages(b.t.Context(), b.JS, b.Space)
	require.NoError(b.t, err)
	return pages
}

// sweep is a sweep of the whole journal that publishes nothing: like a resume that was taken.
func (b *testSweep) sweep(pages sweep.Pages) (sweep.Swept, []string) {
	b.t.Helper()
	var found []string
	swept, err := b.Run(b.t.Context(), pages, later(), sweep.Scope{}, func(_ context.Context, f sweep.Finding) (uint64, error) {
		found = append(found, f.Key.String())
		return 0, nil
	})
	require.NoError(b.t, err)
	return swept, found
}

func TestSweepThatEndsInTheMiddleIsRepeatedAndReadsTheJournalOnce(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(5)
	ctx, crash := context.WithCancelCause(t.Context())
	errCrash := errors.New("crash")
	found := 0
	_, err := b.Run(ctx, b.pages(), later(), sweep.Scope{}, func(ctx context.Context, f sweep.Finding) (uint64, error) {
		if found++; found == 3 {
			crash(errCrash)
		}
		return b.Resume(ctx, f)
	})
	require.ErrorIs(t, err, errCrash)
	swept, err := b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, b.Resume)
	require.NoError(t, err)
	require.Equal(t, sweep.Swept{Open: 5, Checked: 5, Read: 5, Resumed: 3, Oldest: swept.Oldest}, swept, "two resumes wait in the stream, no header is read again")
	in, err := b.JS.Stream(t.Context(), b.Space.InStream())
	require.NoError(t, err)
	require.EqualValues(t, 5, in.CachedInfo().State.Msgs)
}

func TestSweepOfAnotherJournalThanTheLastOneBeginsAgain(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(1)
	pages := sweep.NewMemoryPages()
	require.NoError(t, pages.Commit(t.Context(), sweep.State{From: 1000}))
	swept, found := b.sweep(pages)
	require.Len(t, found, 1)
	require.Equal(t, 1, swept.Headers)
}

// A pool without workers takes none of them: they would fill the stream for all tenants.
func TestTurnIsNotResumedAgainWhileItsLastResumeWaits(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(5)
	in, err := b.JS.Stream(t.Context(), b.Space.InStream())
	require.NoError(t, err)
	messages := func() uint64 {
		info, err := in.Info(t.Context())
		require.NoError(t, err)
		return info.State.Msgs
	}
	for i := range 3 {
		swept, err := b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, b.Resume)
		require.NoError(t, err)
		require.EqualValues(t, 5, messages())
		require.Equal(t, []int{5, 0, 0}[i], swept.Resumed)
	}
	require.NoError(t, in.Purge(t.Context())) // taken, and lost with their worker
	swept, err := b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, b.Resume)
	require.NoError(t, err)
	require.Equal(t, 5, swept.Resumed)
}

// claims stores n claims from the given number on, whose message has a sequence.
func (b *testSweep) claims(from, n int, lease uint64) {
	b.t.Helper()
	var stores sync.WaitGroup
	slots := make(chan struct{}, 64)
	errs := make(chan error, n)
	for i := range n {
		slots <- struct{}{}
		stores.Go(func() {
			defer func() { <-slots }()
			key := subjects.TurnKey("app", fmt.Sprintf("chat-%d", from+i), "", "turn")
			_, err := b.Store.Create(b.t.Context(), idempotency.Record{Key: key.Public(events.KindToolCall), Data: []byte(`{}`), Meta: idempotency.Meta{
				Owner: "w", Nonce: "n", Epoch: 1, Effect: "replay", Lease: idempotency.Lease{Stream: "ONETURN_IN", Seq: lease, Delivery: 1},
			}})
			errs <- err
		})
	}
	stores.Wait()
	for range n {
		require.NoError(b.t, <-errs)
	}
}

// counted counts the reads of a store.
type counted struct {
	idempotency.Store

	reads atomic.Int64
}

func (c *counted) Last(ctx context.Context, key string) (idempotency.Record, error) {
	c.reads.Add(1)
	return c.Store.Last(ctx, key)
}

func (c *counted) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, c.Last, keys)
}

func (c *counted) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	c.reads.Add(1)
	return c.Store.Scan(ctx, key, known)
}

func TestManyOpenTurnsAreReadOnceAndDelayNoOrphan(t *testing.T) {
	t.Parallel()
	const open = 2_500
	b := newTestSweep(t)
	b.Rate = 0
	_, err := b.JS.Publish(t.Context(), "oneturn.in.default.x.app.w.c", []byte("{}")) // a message that stays
	require.NoError(t, err)
	b.claims(0, open/2, 1)
	for i := range open / 2 { // parked ones
		key := subjects.TurnKey("app", fmt.Sprintf("chat-%d", i), "", "turn")
		if i < 100 {
			_, err := b.Store.Create(t.Context(), idempotency.Record{Key: key.Private("park", "1"), Data: []byte(`{}`), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: "parked"}})
			require.NoError(t, err)
		}
	}
	b.claims(open/2, open/2, 1)
	b.claims(open, 1, 4711) // an orphan after them
	store := &counted{Store: b.Store}
	b.Store, b.Budget = store, 1_000
	headers, sweeps := 0, 0
	for ; ; sweeps++ {
		require.Less(t, sweeps, 4, "the orphan is never found")
		swept, found := b.sweep(b.pages())
		require.LessOrEqual(t, swept.Read, 1_500, "a sweep is bounded")
		headers += swept.Headers
		if len(found) > 0 {
			require.Equal(t, []string{"app.chat-2500.0-turn.0"}, found)
			require.Equal(t, open+1, swept.Open)
			break
		}
	}
	require.Equal(t, open+101, headers, "the journal is read once")
	for range 3 { // a round
		b.sweep(b.pages())
	}
	store.reads.Store(0)
	for range 3 { // a round in which nothing happened
		b.sweep(b.pages())
	}
	require.LessOrEqual(t, store.reads.Load(), int64(6), "of the orphan, which nothing resumes here: parked and held turns cost no read of the journal")
}

func TestParkedTurnThatIsCalledIsFound(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.claims(0, 1, 4711)
	key := subjects.TurnKey("app", "chat-0", "", "turn")
	put := func(key, outcome string, data string) {
		_, err := b.Store.Create(t.Context(), idempotency.Record{Key: key, Data: []byte(data), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: outcome}})
		require.NoError(t, err)
	}
	put(key.Public("ask", "1"), "", `{}`)
	put(key.Private("park", "1"), "parked", `{"open":["1"]}`)
	for range 2 {
		swept, found := b.sweep(b.pages())
		require.Empty(t, found)
		require.Equal(t, 1, swept.Open)
	}
	put(key.Private("answer", "1"), string(idempotency.Answered), `"yes"`) // and its message is lost
	_, found := b.sweep(b.pages())
	require.Len(t, found, 1)
	put(key.Public(events.KindToolResponse), "", `{}`)
	swept, found := b.sweep(b.pages())
	require.Empty(t, found)
	require.Zero(t, swept.Open)
}

func TestSweepWhoseStateAnotherOneHasMovedChangesNothing(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(2)
	first, second := b.pages(), b.pages()
	_, err := first.State(t.Context())
	require.NoError(t, err)
	b.sweep(second)
	require.Error(t, first.Commit(t.Context(), sweep.State{}))
	swept, _ := b.sweep(b.pages())
	require.Zero(t, swept.Headers)
	require.Equal(t, 2, swept.Open)
}

func TestPageThatIsLostHasTheJournalReadAgain(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(kv jetstream.KeyValue) error{
		"gone": func(kv jetstream.KeyValue) error { return kv.Purge(t.Context(), subjects.SweepKey("0")) },
		"damaged": func(kv jetstream.KeyValue) error {
			_, err := kv.PutString(t.Context(), subjects.SweepKey("0"), `{"turns":[{"key":"*.c.0-t.0"}]}`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestSweep(t)
			b.orphans(3)
			pages := b.pages()
			require.NoError(t, pages.Commit(t.Context(), sweep.State{}))
			require.NoError(t, pages.Put(t.Context(), 0, sweep.Page{}))
			require.NoError(t, pages.Commit(t.Context(), sweep.State{From: 4, Next: 1, Open: 3}))
			kv, err := b.JS.KeyValue(t.Context(), b.Space.ContextBucket())
			require.NoError(t, err)
			require.NoError(t, lose(kv))
			_, err = b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, b.Resume)
			require.ErrorContains(t, err, "page 0 of the open turns")
			swept, found := b.sweep(b.pages())
			require.Len(t, found, 3)
			require.Equal(t, 3, swept.Open)
		})
	}
}

func TestSweepStaysInItsScopeAndGivesUpOnAServerThatFails(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(12)
	none := func(context.Context, sweep.Finding) (uint64, error) { return 0, nil }
	for scope, want := range map[sweep.Scope]int{
		{App: "app"}: 12, {Chat: "chat"}: 12, {App: "app", Chat: "chat"}: 12, {App: "other"}: 0, {Chat: "other"}: 0,
	} {
		swept, err := b.Run(t.Context(), sweep.NewMemoryPages(), later(), scope, none)
		require.NoError(t, err)
		require.Equal(t, want, swept.Resumed, "%+v", scope)
	}
	errFull := errors.New("the stream is full")
	calls := 0
	_, err := b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, func(context.Context, sweep.Finding) (uint64, error) {
		calls++
		return 0, errFull
	})
	require.ErrorIs(t, err, errFull)
	require.Equal(t, 10, calls)
	swept, _ := b.sweep(b.pages())
	require.Equal(t, 12, swept.Open, "none is forgotten")
}
