package main

import (
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
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

func TestLsListsTheNewestTurns(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	d.publish(t, turnID("a", "", "t1"), "Ada")
	d.publish(t, turnID("b", "r", "t2"), []any{})
	d.publish(t, turnID("a", "", "t3"), "")
	d.publish(t, turnID("a", "", "t4"), "slow")

	require.Equal(t, `time chat turn workflow tool state took owner
TIME a t1 Hello greet ok N ms worker-1
TIME b t2 run r Hello greet validation_failed N ms worker-1
TIME a t3 Hello greet tool_error N ms worker-1
TIME a t4 Hello greet running - worker-1
`, normal(ok(t, d.Server, "ls")))

	turns := func(args ...string) []string {
		found := []string{}
		for _, l := range decode[listing](t, d.Server, append([]string{"ls"}, args...)...).Turns {
			found = append(found, l.Turn)
		}
		return found
	}
	require.Equal(t, []string{"t1", "t3", "t4"}, turns("--chat", "a"))
	require.Equal(t, []string{"t3", "t4"}, turns("--limit", "2"))
	require.True(t, decode[listing](t, d.Server, "ls", "--limit", "2").More)
	require.False(t, decode[listing](t, d.Server, "ls", "--limit", "4").More)
	require.Equal(t, []string{"t4"}, turns("--open"))
	require.Equal(t, []string{}, turns("--app", "other"))
	require.Equal(t, []string{}, turns("--since", "1ns"))
	require.Contains(t, ok(t, d.Server, "ls", "--open", "--chat", "b"), "no open turn in the last 1h of chat b")

	l := decode[listing](t, d.Server, "ls", "--limit", "1").Turns[0]
	require.Equal(t, query.Running, l.State)
	require.Nil(t, l.TotalMS)
	require.Equal(t, "t4", decode[turnReport](t, d.Server, "show", "--key", l.Key).Turn)
}

// TestLsReportsWhenThereIsMore: of open turns that were found, some may have ended when they are read.
func TestLsReportsWhenThereIsMore(t *testing.T) {
	t.Parallel()
	for _, turns := range [][]listed{nil, make([]listed, 17)} {
		var out strings.Builder
		(&listing{Turns: turns, More: true}).text(&out, listSettings{limit: 20, open: true})
		require.Contains(t, out.String(), "there are older ones: a larger --limit shows them")
		require.NotContains(t, out.String(), "17")
		require.NotContains(t, out.String(), "no open turn")
	}
}

func TestLsNamesTheKeyOfATurnWhoseKeyWasUsedBefore(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key := subjects.TurnKey("default", "c", "", "t")
	key.Turn = subjects.ReusedTurnToken("", "t", "0123456789abcdef")
	claim(t, s.Connect(), key, "t")
	text := ok(t, s, "ls")
	require.Contains(t, text, "t (key reused)")
	require.Contains(t, text, "t: turnctl show --key "+key.String())
	require.Contains(t, ok(t, s, "show", "--key", key.String()), "turn t of chat c")
}

// claim stores a claim as a worker does.
func claim(t *testing.T, nc *nats.Conn, key subjects.Key, turn string) {
	t.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	m := &nats.Msg{
		Subject: space.JournalSubject(key.Public("tool_call")), Header: nats.Header{},
		Data: fmt.Appendf(nil, `{"type":"chat.tool_call","data":{"kind":"tool_call","app_id":"default","chat_id":"c","turn":%q}}`, turn),
	}
	m.Header.Set(idempotency.HeaderOwner, "w1")
	m.Header.Set(idempotency.HeaderNonce, "n")
	m.Header.Set(idempotency.HeaderEpoch, "1")
	_, err = nc.RequestMsg(m, 5*time.Second)
	require.NoError(t, err)
}

func TestLsReadsBackwardsUntilItHasEnoughAndLeavesNoReader(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	nc := s.Connect()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	old := subjects.TurnKey("default", "old", "", "t")
	claim(t, nc, old, "t")
	// Over two windows of other records lie between the old turn and the newest one.
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for i := range 3 * firstWindow {
		_, err := js.PublishAsync(space.JournalSubject(subjects.TurnKey("default", "new", "", strconv.Itoa(i)).Public("ask", "1")), nil)
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	for i := range 5 {
		claim(t, nc, subjects.TurnKey("default", "new", "", strconv.Itoa(i)), strconv.Itoa(i))
	}

	l := decode[listing](t, s, "ls", "--limit", "3")
	require.Len(t, l.Turns, 3)
	require.Equal(t, "4", l.Turns[2].Turn)
	require.True(t, l.More)
	l = decode[listing](t, s, "ls")
	require.Len(t, l.Turns, 6)
	require.Equal(t, uint64(1), l.Turns[0].Seq)
	require.Len(t, decode[listing](t, s, "ls", "--chat", "old", "--open").Turns, 1)

	stream, err := js.Stream(t.Context(), space.TurnsStream())
	require.NoError(t, err)
	require.Zero(t, stream.CachedInfo().State.Consumers)
}

func TestNewestKeepsTheLastClaimsThatHaveNotEnded(t *testing.T) {
	t.Parallel()
	at := func(i int) subjects.Record { return whole(subjects.Key{Turn: strconv.Itoa(i)}) }
	all := newest{limit: 3}
	open := newest{limit: 3, open: true}
	for i := range 50 {
		all.add(at(i), uint64(i))
		open.add(at(i), uint64(i))
	}
	for i := 10; i < 50; i++ {
		open.ended(at(i))
	}
	require.Equal(t, []kept{{at(47), 47}, {at(48), 48}, {at(49), 49}}, all.list())
	require.Equal(t, []kept{{at(7), 7}, {at(8), 8}, {at(9), 9}}, open.list())
}

func TestNewestDropsQuestionsOfEndedTurnsAndKeepsTheOnesThatAreAskedAgain(t *testing.T) {
	t.Parallel()
	asked := func(turn, ask string) subjects.Record {
		return subjects.Record{Key: subjects.Key{Turn: turn, Call: subjects.SingleCall}, Kind: events.RecordAsk, ID: ask}
	}
	n := newest{limit: 10, open: true}
	n.add(asked("a", "1"), 1)
	n.add(asked("a", "2"), 2)
	n.add(asked("b", "1"), 3)
	n.ended(asked("a", "1"))
	n.ended(whole(subjects.Key{Turn: "b", Call: subjects.SingleCall}))
	n.add(asked("b", "1"), 6) // under a key that is used by another turn
	require.Equal(t, []kept{{asked("a", "2"), 2}, {asked("b", "1"), 6}}, n.list())
}

func TestKeysOfListsAreWholeSoThatTheyCanBeCopied(t *testing.T) {
	t.Parallel()
	long := func(what string) string { return what + strings.Repeat("-0123456789", 30) }
	at := time.Unix(0, 0)
	narrow := &page{} // a terminal
	(&listing{Turns: []listed{{Time: at, App: long("app"), Chat: long("chat"), Run: long("run"), Turn: long("turn"), Reused: true, Key: long("key"), Error: "e"}}}).text(narrow, listSettings{})
	(&messageList{Messages: []listedMessage{{Time: at, App: "default", Chat: long("chat"), ID: long("message"), Turn: long("itsturn"), Key: long("itskey"), Error: "e"}}}).text(narrow, listSettings{})
	(&deadListing{Letters: []deadLetter{{App: long("deadapp"), Chat: long("deadchat"), Turn: long("deadturn")}}}).text(narrow, at)
	for _, what := range []string{"app", "chat", "run", "turn", "key", "message", "itsturn", "itskey", "deadapp", "deadchat", "deadturn"} {
		require.Contains(t, narrow.String(), long(what))
	}
	require.NotContains(t, narrow.String(), "…")
}
