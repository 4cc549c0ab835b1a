package query_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// archive is a journal of chats, and what is in it.
type archive struct {
	t      *testing.T
	nc     *nats.Conn
	js     jetstream.JetStream
	space  subjects.Space
	store  *kvstore.Store
	reader *query.Reader
	random *rand.Rand
	names  []string
	last   uint64
	pad    int               // bytes of a record at most
	seqs   map[string]uint64 // of the public records of the chat
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	nc := oneturntest.NewServer(t).Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	space := storetest.Bucket(t, nc)
	cfg := stream(t, js, space.TurnsStream())
	cfg.AllowDirect = true
	_, err = js.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
	return &archive{
		t: t, nc: nc, js: js, space: space, store: storetest.Open(t, nc, space), reader: query.New(nc, space, kvstore.Read(nc, space), nil),
		random: rand.New(rand.NewPCG(1, 2)), seqs: map[string]uint64{}, pad: 50,
	}
}

func stream(t *testing.T, js jetstream.JetStream, name string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	require.NoError(t, err)
	return s.CachedInfo().Config
}

// fill stores records of two chats, some of them private; some replace a record.
func (a *archive) fill(count int) {
	a.t.Helper()
	for range count {
		turn := subjects.TurnKey("app", "chat", "", strconv.Itoa(int(a.last)))
		r := idempotency.Record{Key: turn.Public("tool_call"), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1}}
		switch n := a.random.IntN(10); {
		case n < 2:
			r.Key = turn.Private("park", "1")
		case n < 4:
			r.Key = subjects.TurnKey("app", "chat.other", "", turn.Turn).Public("tool_call")
		case n < 5 && len(a.names) > 0:
			r.Key = a.names[a.random.IntN(len(a.names))]
			r.Seq = a.seqs[r.Key]
		}
		r.Data = fmt.Appendf(nil, `{"n":%d,"pad":"%s"}`, a.last, strings.Repeat("x", a.random.IntN(a.pad)))
		seq, err := a.store.Create(a.t.Context(), r)
		require.NoError(a.t, err)
		a.last = seq
		if strings.HasPrefix(r.Key, subjects.ChatRecords("app", "chat")[:len("e.app.chat.")]) {
			if _, known := a.seqs[r.Key]; !known {
				a.names = append(a.names, r.Key)
			}
			a.seqs[r.Key] = seq
		}
	}
}

// requireHistory reads all pages up to a sequence, and compares them with what is stored. A copy that lags may return a record that
// was replaced, before its successor.
func (a *archive) requireHistory(after, upTo uint64, limit int, msg string) {
	a.t.Helper()
	current := map[uint64]bool{}
	var want []uint64
	for _, seq := range a.seqs {
		if current[seq] = true; seq > after && seq <= upTo {
			want = append(want, seq)
		}
	}
	slices.Sort(want)
	var got []uint64
	for through := after; through < upTo; {
		page, err := a.reader.History(a.t.Context(), "app", "chat", through, upTo, limit)
		require.NoError(a.t, err, msg)
		require.Greater(a.t, page.Through, through, msg)
		require.LessOrEqual(a.t, page.Through, upTo, msg)
		require.LessOrEqual(a.t, len(page.Records), limit, msg)
		require.True(a.t, slices.IsSortedFunc(page.Records, func(a, b idempotency.Record) int { return cmp.Compare(a.Seq, b.Seq) }))
		for i := range page.Records {
			require.Greater(a.t, page.Records[i].Seq, through)
			require.LessOrEqual(a.t, page.Records[i].Seq, page.Through)
			require.NoError(a.t, page.Records[i].Err)
			require.NotEmpty(a.t, page.Records[i].Data)
			if current[page.Records[i].Seq] {
				got = append(got, page.Records[i].Seq)
			}
		}
		through = page.Through
	}
	require.Equal(a.t, want, got, "%s: after %d up to %d, %d a page", msg, after, upTo, limit)
}

func (a *archive) requireHistories(msg string) {
	a.t.Helper()
	for range 20 {
		upTo := a.random.Uint64N(a.last) + 1
		a.requireHistory(a.random.Uint64N(upTo+1), upTo, a.random.IntN(9)+1, msg)
		a.requireHistory(0, a.last, a.random.IntN(50)+1, msg)
	}
}

// mirror makes a mirror of the journal, and waits until it has everything.
func (a *archive) mirror(name string) {
	a.t.Helper()
	s, err := a.js.CreateStream(a.t.Context(), jetstream.StreamConfig{
		Name: name, Mirror: &jetstream.StreamSource{Name: a.space.TurnsStream()}, MaxMsgsPerSubject: 1, AllowDirect: true, MirrorDirect: true,
	})
	require.NoError(a.t, err)
	require.Eventually(a.t, func() bool {
		info, err := s.Info(a.t.Context())
		return err == nil && info.State.LastSeq == a.last
	}, 10*time.Second, time.Millisecond)
}

func TestHistoryIsCompleteWhicheverCopyAnswers(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.fill(150)
	a.mirror("OLD")
	old := stream(t, a.js, "OLD")
	old.Mirror, old.MirrorDirect = nil, false // it is a separate stream from now on, and lags
	_, err := a.js.UpdateStream(t.Context(), old)
	require.NoError(t, err)
	a.fill(60)
	a.mirror(a.space.TurnsMirror())
	for name, from := range map[string]query.Source{
		"journal":               {Stream: a.space.TurnsStream()},
		"mirror":                {Stream: a.space.TurnsMirror(), Mirror: true},
		"mirror that lags":      {Stream: "OLD", Mirror: true},
		"replica that lags":     {Stream: "OLD"},
		"mirror that is absent": {Stream: "NONE", Mirror: true},
		"none":                  {None: true},
	} {
		a.reader.Use(from)
		a.requireHistories(name)
	}
}

func TestHistoryHasWhatWasWrittenBetweenItsPages(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.fill(50)
	a.mirror(a.space.TurnsMirror())
	for name, from := range map[string]query.Source{
		"journal": {Stream: a.space.TurnsStream()}, "mirror": {Stream: a.space.TurnsMirror(), Mirror: true},
	} {
		a.reader.Use(from)
		for after := uint64(0); after < a.last; {
			page, err := a.reader.History(t.Context(), "app", "chat", after, a.last, 10)
			require.NoError(t, err)
			var want []uint64
			for _, seq := range a.seqs {
				if seq > after && seq <= page.Through {
					want = append(want, seq)
				}
			}
			slices.Sort(want)
			var got []uint64
			for i := range page.Records {
				if slices.Contains(want, page.Records[i].Seq) { // else it was replaced after a copy that lags was read
					got = append(got, page.Records[i].Seq)
				}
			}
			require.Equal(t, want, got, "%s: after %d", name, after)
			if after = page.Through; after < 2_000 && a.random.IntN(3) > 0 {
				a.fill(20)
			}
		}
	}
}

func TestMirrorIsUsedWhereThereIsOneOfThisJournal(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	require.Equal(t, query.Source{Stream: a.space.TurnsStream()}, a.reader.Look(t.Context(), false))
	a.fill(10)
	a.mirror(a.space.TurnsMirror())
	from := a.reader.Look(t.Context(), true)
	require.Equal(t, query.Source{Stream: a.space.TurnsMirror(), Mirror: true}, from)
	a.requireHistories("found")
	a.reader.Failed(true)
	require.Equal(t, query.Source{Stream: a.space.TurnsStream()}, a.reader.Look(t.Context(), false))

	require.NoError(t, a.js.DeleteStream(t.Context(), a.space.TurnsStream()))
	storetest.Bucket(t, a.nc)
	require.NotEqual(t, a.space.TurnsMirror(), a.reader.Look(t.Context(), true).Stream, "it has the records of the old journal")
}

func TestHistoryOfManyRecordsIsComplete(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.fill(2_500) // a batch has 1,024 at most
	a.requireHistory(0, a.last, 100, "journal")
}

func TestPageOfLargeRecordsIsBounded(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.pad = 100 << 10
	a.fill(60)
	a.mirror(a.space.TurnsMirror())
	for _, from := range []query.Source{{Stream: a.space.TurnsStream()}, {Stream: a.space.TurnsMirror(), Mirror: true}, {None: true}} {
		a.reader.Use(from)
		for after := uint64(0); after < a.last; {
			page, err := a.reader.History(t.Context(), "app", "chat", after, a.last, 50)
			require.NoError(t, err)
			size := 0
			for i := range page.Records {
				size += len(page.Records[i].Data)
			}
			require.LessOrEqual(t, size, 400<<10)
			after = page.Through
		}
		a.requireHistory(0, a.last, 50, from.Stream)
		require.Equal(t, from.Stream, a.reader.Look(t.Context(), false).Stream, "it is still used")
	}
}

func TestHistoryToTheEndIsTheOneUpToTheLastRecord(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.fill(60)
	for _, from := range []query.Source{{Stream: a.space.TurnsStream()}, {None: true}} {
		a.reader.Use(from)
		for after, end := uint64(0), false; !end; {
			want, err := a.reader.History(t.Context(), "app", "chat", after, a.last, 7)
			require.NoError(t, err)
			got, err := a.reader.History(t.Context(), "app", "chat", after, math.MaxUint64, 7)
			require.NoError(t, err)
			require.Equal(t, want.Records, got.Records)
			if end = want.Through == a.last; end {
				want.Through = math.MaxUint64
			}
			require.Equal(t, want.Through, got.Through)
			after = got.Through
		}
		page, err := a.reader.History(t.Context(), "app", "chat", a.last+9, math.MaxUint64, 7)
		require.NoError(t, err)
		require.Equal(t, &query.HistoryPage{Through: math.MaxUint64}, page, "a cursor after the end")
	}
}

func TestHistoryOfAChatWithoutRecordsIsEmpty(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.fill(20)
	a.mirror(a.space.TurnsMirror())
	for _, from := range []query.Source{{Stream: a.space.TurnsStream()}, {Stream: a.space.TurnsMirror(), Mirror: true}, {None: true}} {
		a.reader.Use(from)
		page, err := a.reader.History(t.Context(), "app", "empty", 0, a.last, 5)
		require.NoError(t, err)
		require.Equal(t, &query.HistoryPage{Through: a.last}, page)
	}
	require.False(t, a.reader.Look(t.Context(), true).None)
}
