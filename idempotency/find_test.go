package idempotency_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/turntest"
)

func TestQuestionsAreFoundByTheirIDAlone(t *testing.T) {
	t.Parallel()
	nc := turntest.NewServer(t).Connect()
	space := bucket(t, nc)
	kv := newKV(t, nc, space)
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
			_, err := kv.Create(t.Context(), idempotency.Record{Key: key.Public(subjects.KindAsk, ask), Data: []byte("{}")})
			require.NoError(t, err)
		}
		names, err := kv.Names(t.Context(), key.Records())
		require.NoError(t, err)
		require.Equal(t, []string{key.Public(subjects.KindAsk, "1"), key.Public(subjects.KindAsk, "2")}, []string{names[0].Name(), names[1].Name()})
	}
	for _, id := range turns {
		key := subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
		call := events.CallID(id, key.Turn)
		found, err := kv.FindQuestions(t.Context(), key.App, key.Chat, call, "2")
		require.NoError(t, err)
		require.Equal(t, []subjects.Record{{Key: key, Kind: subjects.KindAsk, ID: "2"}}, found, call)
		found, err = kv.FindQuestions(t.Context(), key.App, key.Chat, call, idempotency.AnyToken)
		require.NoError(t, err)
		require.Len(t, found, 2, call)
	}
	for _, call := range []string{"t2", "t1@00000000", "t", "@0a1b2c3d", ""} {
		found, err := kv.FindQuestions(t.Context(), "app", "chat", call, "1")
		require.NoError(t, err)
		require.Empty(t, found, call)
	}
}

// A list of too many names is long, and whoever reads page by page asks for it on each.
func TestTooManyNamesAreNotAskedForAgainAndAgain(t *testing.T) {
	t.Parallel()
	nc := turntest.NewServer(t).Connect()
	space := bucket(t, nc)
	kv := newKV(t, nc, space)
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
	order := idempotency.NewOrder(kv)
	filter := subjects.ChatRecords("app", "chat")
	before := lists.Load()
	for range 5 {
		_, err := order.From(t.Context(), filter, 1)
		require.ErrorIs(t, err, idempotency.ErrTooMany)
	}
	require.NoError(t, nc.Flush())
	require.EqualValues(t, 1, lists.Load()-before)
	found, err := order.From(t.Context(), subjects.ChatRecords("app", "other"), 1)
	require.NoError(t, err)
	require.Empty(t, found, "another filter is asked for")
}
