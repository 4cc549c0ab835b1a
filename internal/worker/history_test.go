package worker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/subjects"
)

// archive is a journal with the records of a chat among others, and a worker that is asked for them.
type archive struct {
	*testing.T
	nc    *nats.Conn
	space subjects.Space
	store *kvstore.Store
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	s := server(t)
	w := start(t, s, greeter())
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, 5*time.Millisecond)
	a := &archive{T: t, nc: s.Connect()}
	var err error
	a.space, err = subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	a.store, err = kvstore.Open(a.nc, a.space)
	require.NoError(t, err)
	t.Cleanup(a.store.Close)
	return a
}

// put stores claims of the chat, one of each turn, and returns their sequences.
func (a *archive) put(from, count int) (seqs []uint64) {
	a.Helper()
	meta := idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Lease: idempotency.Lease{Stream: a.space.InStream(), Seq: 1, Delivery: 1}}
	for n := range count {
		key := subjects.TurnKey("app", "chat", "", fmt.Sprintf("t%d", from+n)).Public("tool_call")
		seq, err := a.store.Create(a.Context(), idempotency.Record{Key: key, Meta: meta, Data: []byte("{}")})
		require.NoError(a, err)
		seqs = append(seqs, seq)
	}
	return seqs
}

// others stores so many records of other chats.
func (a *archive) others(count int) {
	a.Helper()
	js, err := jetstream.New(a.nc, jetstream.WithPublishAsyncMaxPending(1000))
	require.NoError(a, err)
	for n := range count {
		_, err := js.PublishAsync(a.space.JournalSubject(fmt.Sprintf("e.app.other.t%d.0.tool_call", n)), []byte("{}"), jetstream.WithStallWait(20*time.Second))
		require.NoError(a, err)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(20 * time.Second):
		require.Fail(a, "the records of other chats are not stored")
	}
}

// history returns the sequences of the chat from one on, page by page.
func (a *archive) history(from uint64) (seqs []uint64, pages int) {
	a.Helper()
	for {
		body, err := json.Marshal(api.HistoryRequest{Chat: "chat", From: from})
		require.NoError(a, err)
		m, err := a.nc.Request(a.space.API("app", api.VerbHistory), body, 10*time.Second)
		require.NoError(a, err)
		require.Empty(a, m.Header.Get("Nats-Service-Error"))
		var page api.Page
		require.NoError(a, json.Unmarshal(m.Data, &page))
		for _, r := range page.Records {
			seqs = append(seqs, r.Sequence)
		}
		pages++
		if from = page.Next; from == 0 {
			return seqs, pages
		}
	}
}

// searches returns where the worker's searches of the journal began from now on.
func (a *archive) searches() func() []uint64 {
	a.Helper()
	var mu sync.Mutex
	var from []uint64
	_, err := a.nc.Subscribe("$JS.API.STREAM.MSG.GET."+a.space.TurnsStream(), func(m *nats.Msg) {
		var q struct {
			Seq  uint64 `json:"seq"`
			Next string `json:"next_by_subj"`
		}
		if err := json.Unmarshal(m.Data, &q); err != nil || q.Next == "" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		from = append(from, q.Seq)
	})
	require.NoError(a, err)
	return func() []uint64 {
		require.NoError(a, a.nc.Flush())
		mu.Lock()
		defer mu.Unlock()
		return from
	}
}

func TestJournalIsNotSearchedBeyondTheEndOfAChat(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	stored := a.put(0, 40)
	a.others(50)
	searches := a.searches()
	found, pages := a.history(0)
	require.Equal(t, stored, found)
	require.Equal(t, 3, pages)
	last := stored[len(stored)-1]
	for _, from := range []uint64{last + 1, last + 10, last + 1000} {
		found, _ = a.history(from)
		require.Empty(t, found)
	}
	found, pages = a.history(stored[24]) // a page that ends with the last record
	require.Len(t, found, 16)
	require.Equal(t, 1, pages)
	require.NotEmpty(t, searches())
	for _, from := range searches() {
		require.LessOrEqual(t, from, last)
	}
}

func TestChatThatRestedForLongIsReadWithoutASearchOfTheGap(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	before := a.put(0, 20)
	a.others(50_000)
	stored := slices.Concat(before, a.put(20, 20))
	searches := a.searches()
	for range 2 { // the second time it is known where the records are
		found, _ := a.history(0)
		require.Equal(t, stored, found)
	}
	found, _ := a.history(stored[19])
	require.Equal(t, stored[19:], found)
	for _, from := range searches() {
		if from > 1 { // where a chat begins, the server knows
			require.Greater(t, from, before[19])
		}
	}
	stored = append(stored, a.put(40, 1)...)
	found, _ = a.history(0)
	require.Equal(t, stored, found)
}
