package feed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/feed"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// journal is the journal of a server, with what writes to it and reads it.
type journal struct {
	t     *testing.T
	nc    *nats.Conn
	js    jetstream.JetStream
	space subjects.Space
	store *kvstore.Store
}

func newJournal(t *testing.T, s *oneturntest.Server) *journal {
	t.Helper()
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	space := storetest.Bucket(t, nc)
	return &journal{t: t, nc: nc, js: js, space: space, store: storetest.Open(t, nc, space)}
}

// open opens a feed of the journal with a separate connection.
func (j *journal) open(s *oneturntest.Server, o feed.Options) *feed.Feeds {
	j.t.Helper()
	nc := s.Connect()
	f, err := feed.Open(j.t.Context(), nc, j.space, query.New(nc, j.space, kvstore.Read(nc, j.space), nil), o)
	require.NoError(j.t, err)
	j.t.Cleanup(f.Close)
	return f
}

// write writes the claim of a turn, however often a try fails.
func (j *journal) write(app, chat, turn string) {
	j.record(subjects.TurnKey(app, chat, "", turn).Public(events.RecordCall), turn)
}

// private writes a record that is not an event.
func (j *journal) private(app, chat, turn string) {
	j.record(subjects.TurnKey(app, chat, "", turn).Private(events.RecordPark, "1"), turn)
}

func (j *journal) record(key, turn string) {
	data := fmt.Sprintf(`{"type":"chat.tool_call","data":{"kind":"tool_call","turn":%q},"timestamp":"2026-01-02T03:04:05Z"}`, turn)
	r := idempotency.Record{Key: key, Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1}, Data: []byte(data)}
	for {
		_, err := j.store.Create(j.t.Context(), r)
		if exists := (*idempotency.ExistsError)(nil); err == nil || errors.As(err, &exists) || j.t.Context().Err() != nil {
			return
		}
	}
}

// sequences returns the sequences of the public records of a chat.
func (j *journal) sequences(app, chat string) []uint64 {
	j.t.Helper()
	info, err := jsapi.Info(j.t.Context(), j.nc, j.space.TurnsStream(), j.space.JournalSubject(subjects.ChatRecords(subjects.Token(app), chat)), 0)
	require.NoError(j.t, err)
	found := make([]uint64, 0, len(info.State.Subjects))
	for name := range info.State.Subjects {
		m, err := jsapi.Read(j.t.Context(), j.nc, j.space.TurnsStream(), jsapi.Get{Last: name})
		require.NoError(j.t, err)
		found = append(found, m.Seq)
	}
	slices.Sort(found)
	return found
}

// received is what a follower has received.
type received struct {
	sequences []uint64
	live      int
	replayed  int
	boundary  *feed.Boundary
	err       error
}

// add takes one item, and reports what is wrong with it.
func (r *received) add(item feed.Item) error {
	switch e := item.Event; {
	case item.Boundary != nil && r.boundary != nil:
		return errors.New("a second boundary")
	case item.Boundary != nil:
		r.boundary = item.Boundary
		if r.boundary.Replayed != r.replayed {
			return fmt.Errorf("the boundary counts %d events, not %d", r.boundary.Replayed, r.replayed)
		}
	case e.Replay != (r.boundary == nil):
		return fmt.Errorf("%d has replay %t on the wrong side of the boundary", e.Sequence, e.Replay)
	case e.Sequence == 0:
		r.live++
	default:
		r.sequences = append(r.sequences, e.Sequence)
		if e.Replay {
			r.replayed++
		}
	}
	return nil
}

// until receives from a follower until it has the boundary and the record of a turn.
func (r *received) until(ctx context.Context, w *feed.Follower, turn string) {
	for ended := false; r.err == nil && (!ended || r.boundary == nil); {
		item, err := w.Next(ctx)
		if err != nil {
			r.err = err
			return
		}
		ended = ended || item.Event != nil && item.Event.Name.Turn == subjects.TurnToken("", turn)
		r.err = r.add(item)
	}
}

// next receives one item.
func next(t *testing.T, w *feed.Follower) feed.Item {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	item, err := w.Next(ctx)
	require.NoError(t, err)
	return item
}

// requireNothing fails if a follower receives anything within a moment.
func requireNothing(t *testing.T, w *feed.Follower) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	item, err := w.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "%+v", item)
}
