package query_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// questions returns the questions that are meant.
func questions(ctx context.Context, list query.Lister, r *query.Ref) ([]subjects.Record, error) {
	return list.Locate(ctx, r, r.Questions)
}

// asking searches a chat for the calls that have asked a question.
func asking(ctx context.Context, list query.Lister, chat string) ([]subjects.Record, error) {
	r := &query.Ref{App: "app", Chat: chat, Call: "x@00000000", Ask: "1"}
	return list.Search(ctx, r, r.Questions)
}

func TestQuestionsAreFoundByTheirIDAlone(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	space := storetest.Bucket(t, nc)
	kv := storetest.Open(t, nc, space)
	turns := []events.TurnID{
		{App: "app", Chat: "chat", Turn: "t1"},
		{App: "app", Chat: "chat", Run: "r1", Turn: "t1"},
		{App: "app", Chat: "chat", Run: "r2", Turn: "t1"},
		{App: "app", Chat: "chat", Turn: "t/1"},
		{App: "app", Chat: "chat", Turn: "t1@0a1b2c3d"},
		{App: "app", Chat: "other", Turn: "t1"},
	}
	for _, id := range turns {
		key := subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
		for _, ask := range []string{"1", "2"} {
			_, err := kv.Create(t.Context(), idempotency.Record{Key: key.Public(events.RecordAsk, ask), Data: []byte("{}")})
			require.NoError(t, err)
		}
		names, err := kv.Names(t.Context(), key.Records())
		require.NoError(t, err)
		require.Equal(t, []string{key.Public(events.RecordAsk, "1"), key.Public(events.RecordAsk, "2")}, []string{names[0].Name(), names[1].Name()})
	}
	for _, id := range turns {
		key := subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
		call := events.CallID(id, key.Turn)
		found, err := questions(t.Context(), kv.Names, &query.Ref{App: key.App, Chat: key.Chat, Call: call, Ask: "2"})
		require.NoError(t, err)
		require.Equal(t, []subjects.Record{{Key: key, Kind: events.RecordAsk, ID: "2"}}, found, call)
		found, err = questions(t.Context(), kv.Names, &query.Ref{App: key.App, Chat: key.Chat, Call: call, Ask: idempotency.AnyToken})
		require.NoError(t, err)
		require.Len(t, found, 2, call)
	}
	for _, call := range []string{"t2", "t1@00000000", "t", "@0a1b2c3d", ""} {
		found, err := questions(t.Context(), kv.Names, &query.Ref{App: "app", Chat: "chat", Call: call, Ask: "1"})
		require.NoError(t, err)
		require.Empty(t, found, call)
	}
}

// Both turns have asked a question with the same id in their calls.
func TestQuestionOfAUsedKeyIsNotFoundInTheFirstTurnOfItsRun(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	kv := storetest.Open(t, nc, storetest.Bucket(t, nc))
	const fingerprint = "0123456789abcdef"
	first := subjects.TurnKey("app", "chat", "run", "turn")
	again := first.Reuse("run", "turn", fingerprint)
	for _, key := range []string{first.Public(events.RecordAsk, "1"), again.Public(events.RecordAsk, "1"), first.ReuseNote(fingerprint)} {
		_, err := kv.Create(t.Context(), idempotency.Record{Key: key, Data: []byte("{}")})
		require.NoError(t, err)
	}
	for _, key := range []subjects.Key{first, again} {
		found, err := questions(t.Context(), kv.Names, &query.Ref{
			App: key.App, Chat: key.Chat, Run: "run", Call: events.QualifiedCallID("turn", key.Turn), Ask: "1",
		})
		require.NoError(t, err)
		require.Equal(t, []subjects.Record{{Key: key, Kind: events.RecordAsk, ID: "1"}}, found)
	}
}

// A list of too many names is long, and a caller that reads page by page needs it for each page.
func TestTooManyNamesAreListedOnceOnly(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	space := storetest.Bucket(t, nc)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(1000))
	require.NoError(t, err)
	for n := range 10_001 {
		_, err := js.PublishAsync(space.JournalSubject(fmt.Sprintf("e.app.chat.t%d.0.tool_call", n)), []byte("{}"), jetstream.WithStallWait(20*time.Second))
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	var lists atomic.Int64
	_, err = nc.Subscribe("$JS.API.STREAM.INFO."+space.TurnsStream(), func(*nats.Msg) { lists.Add(1) })
	require.NoError(t, err)
	order := query.NewOrder(nc, space.TurnsStream())
	budget := func(search func() error) error { return search() }
	filter := space.JournalSubject(subjects.ChatRecords("app", "chat"))
	before := lists.Load()
	for range 5 {
		_, err := order.From(t.Context(), budget, filter, 1)
		require.ErrorIs(t, err, idempotency.ErrTooMany)
	}
	require.NoError(t, nc.Flush())
	require.EqualValues(t, 1, lists.Load()-before)
	found, err := order.From(t.Context(), budget, space.JournalSubject(subjects.ChatRecords("app", "other")), 1)
	require.NoError(t, err)
	require.Empty(t, found, "another filter is asked for")
}

// Only an id that does not lead to its turn has the names of a chat listed.
func TestQuestionsThatLeadToTheirTurnAreFoundWithoutTheChat(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	space := storetest.Bucket(t, nc)
	kv := storetest.Open(t, nc, space)
	plain := subjects.TurnKey("app", "chat", "", "t")
	runs := subjects.TurnKey("app", "chat", "r1", "t")
	reused := plain.Reuse("", "t", "0123456789abcdef")
	for _, key := range []subjects.Key{plain, runs, reused} {
		for _, record := range []string{key.Public(events.RecordAsk, "1"), key.Public("tool_call")} {
			_, err := kv.Create(t.Context(), idempotency.Record{Key: record, Meta: idempotency.Meta{Owner: "o", Nonce: "n", Epoch: 1, Lease: idempotency.Lease{Stream: "IN", Seq: 1, Delivery: 1}}, Data: []byte("{}")})
			require.NoError(t, err)
		}
	}
	_, err := kv.Create(t.Context(), idempotency.Record{Key: plain.ReuseNote("0123456789abcdef")})
	require.NoError(t, err)
	var listed []string
	list := query.Lister(func(ctx context.Context, filter string) ([]subjects.Record, error) {
		listed = append(listed, filter)
		return kv.Names(ctx, filter)
	})
	call := func(key subjects.Key) string { return events.QualifiedCallID("t", key.Turn) }
	const chat = "e.app.chat.*.0."
	for name, c := range map[string]struct {
		of       query.Ref
		want     subjects.Key
		searches bool
	}{
		"no run":        {query.Ref{Call: "t"}, plain, false},
		"run":           {query.Ref{Call: call(runs), Run: "r1"}, runs, false},
		"unknown run":   {query.Ref{Call: call(runs)}, runs, true},
		"reused key":    {query.Ref{Call: call(reused)}, reused, false},
		"another run":   {query.Ref{Call: call(runs), Run: "r2"}, subjects.Key{}, false},
		"short hash":    {query.Ref{Call: "t@0000000"}, subjects.Key{}, false},
		"leads nowhere": {query.Ref{Call: "t@00000000"}, subjects.Key{}, true},
	} {
		listed = nil
		c.of.App, c.of.Chat, c.of.Ask = "app", "chat", "1"
		found, err := questions(t.Context(), list, &c.of)
		require.NoError(t, err, name)
		claim, err := query.OpenCall(t.Context(), kv, list, &c.of)
		if c.want == (subjects.Key{}) {
			require.Empty(t, found, name)
			require.ErrorIs(t, err, idempotency.ErrNotFound, name)
		} else {
			require.Equal(t, []subjects.Record{{Key: c.want, Kind: events.RecordAsk, ID: "1"}}, found, name)
			require.NoError(t, err, name)
			require.Equal(t, c.want.Public("tool_call"), claim.Key, name)
		}
		require.Equal(t, c.searches, slices.Contains(listed, chat+"ask.1"), "%s: %v", name, listed)
		require.Equal(t, c.searches, slices.Contains(listed, chat+"tool_call"), "%s: %v", name, listed)
	}
}

func TestRefusedListAndOversizedListAreErrorsAndNoAbsence(t *testing.T) {
	t.Parallel()
	failed, lists := errors.New("refused"), 0
	var oversized query.OversizedFilters
	list := oversized.Lister(func(_ context.Context, filter string) ([]subjects.Record, error) {
		switch lists++; filter {
		case "e.app.full.*.0.ask.1":
			return nil, idempotency.ErrTooMany
		case "e.app.chat.*.0.ask.1":
			return nil, failed
		}
		return nil, nil
	})
	for range 3 {
		_, err := asking(t.Context(), list, "chat")
		require.ErrorIs(t, err, failed)
	}
	require.Equal(t, 3, lists)
	for range 3 {
		_, err := asking(t.Context(), list, "full")
		require.ErrorIs(t, err, idempotency.ErrTooMany)
		_, err = questions(t.Context(), list, &query.Ref{App: "app", Chat: "full", Call: "x@00000000", Ask: "1"})
		require.ErrorIs(t, err, idempotency.ErrTooMany)
	}
	require.Equal(t, 4+3*2, lists, "the oversized one is listed once")
}
