package feed_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/feed"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

func TestFollowerReceivesTheHistoryTheBoundaryAndWhatComesLater(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	j.write("app", "chat 1", "a")
	j.write("app", "other", "a")
	j.private("app", "chat 1", "a")
	f := j.open(s, feed.Options{})
	require.Eventually(t, func() bool { return f.Ready() == nil }, 20*time.Second, 5*time.Millisecond)
	w := f.Follow("app", "chat 1", 0)
	defer w.Close()

	e := next(t, w).Event
	require.Equal(t, uint64(1), e.Sequence)
	require.Equal(t, "tool_call", e.Kind)
	require.Equal(t, subjects.TurnKey("app", "chat 1", "", "a"), e.Name.Key)
	require.Contains(t, string(e.JSON), `"turn":"a"`)
	require.True(t, e.Replay)
	require.WithinDuration(t, time.Now(), e.Time, time.Minute)
	require.Equal(t, &feed.Boundary{Last: 1, Replayed: 1}, next(t, w).Boundary)
	requireNothing(t, w)
	j.write("app", "other", "b")
	j.write("app", "chat 1", "b")
	e = next(t, w).Event
	require.Equal(t, uint64(5), e.Sequence)
	require.False(t, e.Replay)
}

func TestEventsThatArePendingAreReceivedWithoutWaiting(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	j.write("app", "chat", "a")
	f := j.open(s, feed.Options{})
	w, witness := f.Follow("app", "chat", 0), f.Follow("app", "chat", 0)
	defer w.Close()
	defer witness.Close()
	require.False(t, w.Pending(), "before the history is read")
	require.NotNil(t, next(t, w).Event)
	require.False(t, w.Pending(), "the boundary is not an event")
	require.NotNil(t, next(t, w).Boundary)
	const more = 100
	for i := range more {
		j.write("app", "chat", strconv.Itoa(i))
	}
	var r received
	r.until(t.Context(), witness, strconv.Itoa(more-1))
	require.NoError(t, r.err)

	pending := 0
	for range more {
		if w.Pending() {
			pending++
		}
		require.NotNil(t, next(t, w).Event)
	}
	require.False(t, w.Pending())
	require.Greater(t, pending, more/2)
}

func TestEventIsPreparedAndDecodedOnceForAllFollowers(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	f := j.open(s, feed.Options{})
	prepared := 0
	var frames [2][]byte
	followers := [2]*feed.Follower{f.Follow("app", "chat", 0), f.Follow("app", "chat", 0)}
	for _, w := range followers {
		defer w.Close()
		require.NotNil(t, next(t, w).Boundary)
	}
	j.write("app", "chat", "a")
	for i, w := range followers {
		var err error
		frames[i], err = next(t, w).Event.Prepared(func(e *feed.Event) ([]byte, error) {
			prepared++
			return append([]byte("frame "), e.JSON...), nil
		})
		require.NoError(t, err)
	}
	require.Equal(t, 1, prepared)
	require.Equal(t, frames[0], frames[1])
	require.Contains(t, string(frames[1]), `"turn":"a"`)
	j.write("app", "chat", "b")
	decoded := 0
	for _, w := range followers {
		value, err := next(t, w).Event.Decoded(func(e *feed.Event) (any, error) {
			decoded++
			return e.Kind, nil
		})
		require.NoError(t, err)
		require.Equal(t, "tool_call", value)
	}
	require.Equal(t, 1, decoded)
}

func TestTextOfAMessageHasWhatIsDue(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	f := j.open(s, feed.Options{})
	w := f.Follow("app", "chat", 0)
	require.NotNil(t, next(t, w).Boundary)
	_, err := j.store.Create(t.Context(), idempotency.Record{
		Key: subjects.MessageKey("app", "chat", "", "m").Public(events.RecordText), Data: []byte(`{"type":"chat.text","data":{"kind":"text"}}`),
		Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: "turn"},
	})
	require.NoError(t, err)
	for range 2 { // from the consumer, then from the journal
		e := next(t, w).Event
		require.Equal(t, "turn", e.Due)
		require.Equal(t, "text", e.Kind)
		w = f.Follow("app", "chat", 0)
	}
}

func TestEventThatIsNotStoredHasNoSequence(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	f := j.open(s, feed.Options{})
	w := f.Follow("app", "chat", 0)
	require.Equal(t, &feed.Boundary{}, next(t, w).Boundary)
	for _, chat := range []string{"other", "chat"} {
		require.NoError(t, j.nc.Publish(j.space.Live("app", chat, events.KindToolProgress), []byte(`{"type":"chat.tool_progress","data":{"percent":1}}`)))
	}
	e := next(t, w).Event
	require.Zero(t, e.Sequence)
	require.Equal(t, events.KindToolProgress, e.Kind)
	require.Equal(t, subjects.Record{}, e.Name)
	requireNothing(t, w)
}

func TestCursorBeyondTheJournalReplaysEverything(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	j.write("app", "chat", "a")
	j.write("app", "chat", "b")
	f := j.open(s, feed.Options{})
	w := f.Follow("app", "chat", 3)
	require.Equal(t, uint64(1), next(t, w).Event.Sequence)
	require.True(t, w.Reset(), "known with the first event")
	require.Equal(t, uint64(2), next(t, w).Event.Sequence)
	require.Equal(t, &feed.Boundary{Last: 2, Replayed: 2, Reset: true}, next(t, w).Boundary)

	w = f.Follow("app", "chat", 2)
	require.Equal(t, &feed.Boundary{Last: 2}, next(t, w).Boundary, "nothing is after the newest record")
	require.False(t, w.Reset())
	for after, beyond := range map[uint64]bool{0: false, 2: false, 3: true} {
		got, err := f.IsBeyond(t.Context(), after)
		require.NoError(t, err)
		require.Equal(t, beyond, got, "%d", after)
	}
	requireNothing(t, w)
}

func TestDamagedRecordIsLeftOutAndReported(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	damaged := make(chan string, 2)
	f := j.open(s, feed.Options{Damaged: func(key string, sequence uint64) { damaged <- fmt.Sprint(key, " ", sequence) }})
	early := f.Follow("app", "chat", 0)
	require.NotNil(t, next(t, early).Boundary)
	require.NoError(t, j.nc.Publish(j.space.JournalSubject(subjects.TurnKey("app", "chat", "", "x").Public(events.RecordCall)), []byte("{")))
	j.write("app", "chat", "a")
	require.Equal(t, uint64(2), next(t, early).Event.Sequence)
	require.Equal(t, uint64(2), next(t, f.Follow("app", "chat", 0)).Event.Sequence)
	for range 2 { // from the consumer, then from the journal
		require.Equal(t, subjects.TurnKey("app", "chat", "", "x").Public(events.RecordCall)+" 1", <-damaged)
	}
}

func TestFollowerThatDoesNotReadCostsBoundedMemoryAndMissesNothing(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	f := j.open(s, feed.Options{QueueBytes: 4 << 10, PageRecords: 7})
	slow, quick := f.Follow("app", "chat", 0), f.Follow("app", "chat", 0)
	require.NotNil(t, next(t, slow).Boundary)
	require.NotNil(t, next(t, quick).Boundary)
	const records = 100
	for i := range records {
		j.write("app", "chat", strconv.Itoa(i))
		require.Equal(t, uint64(i+1), next(t, quick).Event.Sequence, "it is not delayed")
	}
	require.LessOrEqual(t, feed.Queued(slow), 4<<10)
	require.NoError(t, j.nc.Publish(j.space.Live("app", "chat", events.KindToolProgress), []byte(`{}`)))
	require.Zero(t, next(t, quick).Event.Sequence)
	for i := range records {
		e := next(t, slow).Event
		require.Equal(t, uint64(i+1), e.Sequence)
		require.False(t, e.Replay)
	}
	requireNothing(t, slow)
	j.write("app", "chat", "last")
	require.Equal(t, uint64(records+1), next(t, slow).Event.Sequence)
}

func TestEventLargerThanTheQueueIsDelivered(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	f := j.open(s, feed.Options{QueueBytes: 1 << 10})
	w := f.Follow("app", "chat", 0)
	require.NotNil(t, next(t, w).Boundary)
	large := strings.Repeat("x", 100<<10)
	for i := range 3 {
		j.write("app", "chat", strconv.Itoa(i))
		j.record(subjects.TurnKey("app", "chat", "", "large "+strconv.Itoa(i)).Public(events.RecordCall), large)
	}
	for i := range 6 {
		require.Equal(t, uint64(i+1), next(t, w).Event.Sequence)
	}
}

func TestReadsThatFailAreRepeatedUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	j := newJournal(t, s)
	j.write("app", "chat", "a")
	f := j.open(s, feed.Options{})
	w := f.Follow("app", "chat", 0)
	require.NoError(t, s.Stop())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := w.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Error(t, f.Ready())
}

func TestClosedFollowerAndClosedFeedEndNext(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	f := j.open(s, feed.Options{})
	a, b := f.Follow("app", "chat", 0), f.Follow("app", "chat", 0)
	require.NotNil(t, next(t, a).Boundary)
	ended := make(chan error)
	go func() {
		_, err := a.Next(context.Background())
		ended <- err
	}()
	a.Close()
	require.ErrorIs(t, <-ended, feed.ErrClosed)
	a.Close()
	require.NotNil(t, next(t, b).Boundary)
	f.Close()
	_, err := b.Next(t.Context())
	require.ErrorIs(t, err, feed.ErrClosed)
	_, err = f.Follow("app", "chat", 0).Next(t.Context())
	require.ErrorIs(t, err, feed.ErrClosed)
	require.ErrorIs(t, f.Ready(), feed.ErrClosed)
}

func TestJournalThatWasCreatedAgainEndsFollowers(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	j.write("app", "chat", "a")
	f := j.open(s, feed.Options{CheckEvery: 10 * time.Millisecond})
	w := f.Follow("app", "chat", 0)
	require.Equal(t, uint64(1), next(t, w).Event.Sequence)
	require.NotNil(t, next(t, w).Boundary)
	require.NoError(t, j.js.DeleteStream(t.Context(), j.space.TurnsStream()))
	storetest.Bucket(t, j.nc)
	for i := range 20 { // with sequences that the old journal has not delivered
		require.NoError(t, j.nc.PublishMsg(&nats.Msg{
			Subject: j.space.JournalSubject(subjects.TurnKey("app", "chat", "", strconv.Itoa(i)).Public(events.RecordCall)), Data: []byte("{}"),
			Header: nats.Header{idempotency.HeaderOwner: {"w"}, idempotency.HeaderNonce: {"n"}, idempotency.HeaderEpoch: {"1"}},
		}))
	}
	_, err := w.Next(t.Context())
	require.ErrorIs(t, err, feed.ErrJournalReplaced)
	require.ErrorIs(t, f.Ready(), feed.ErrJournalReplaced)
}

func TestJournalThatWasDeletedEndsFollowers(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	j := newJournal(t, s)
	f := j.open(s, feed.Options{CheckEvery: 10 * time.Millisecond})
	w := f.Follow("app", "chat", 0)
	require.NotNil(t, next(t, w).Boundary)
	require.NoError(t, j.js.DeleteStream(t.Context(), j.space.TurnsStream()))
	_, err := w.Next(t.Context())
	require.ErrorIs(t, err, feed.ErrJournalReplaced)
}

func TestFeedNeedsAJournal(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t, oneturntest.Memory).Connect()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	_, err = feed.Open(t.Context(), nc, space, nil, feed.Options{})
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}
