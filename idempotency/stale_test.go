package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
)

// lagging is a store that reads from a node that lags: reads show the journal as it was a few records ago. Creates are the leader's.
type lagging struct {
	*storetest.Memory

	mu   sync.Mutex
	rng  *rand.Rand
	last uint64 // newest sequence
	lied int    // reads that missed something
}

func (s *lagging) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	seq, err := s.Memory.Create(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, seq)
	return seq, err
}

// horizon is the newest sequence that a read sees.
func (s *lagging) horizon() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last - min(s.last, s.rng.Uint64N(4))
}

func (s *lagging) seen(r idempotency.Record, err error) (idempotency.Record, error) {
	if err == nil && r.Seq > s.horizon() {
		s.lie()
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return r, err
}

func (s *lagging) lie() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lied++
}

func (s *lagging) At(ctx context.Context, seq uint64) (idempotency.Record, error) {
	return s.seen(s.Memory.At(ctx, seq))
}

func (s *lagging) Last(ctx context.Context, key string) (idempotency.Record, error) {
	return s.seen(s.Memory.Last(ctx, key))
}

func (s *lagging) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, s.Last, keys)
}

func (s *lagging) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	records, err := s.Memory.Scan(ctx, key, known)
	seen, horizon := records[:0], s.horizon()
	for _, r := range records {
		if r.Seq <= horizon {
			seen = append(seen, r)
		} else {
			s.lie()
		}
	}
	return seen, err
}

// F15: every read is of a node that lags. Workers race for turns, their messages come again and
// again, and each turn still has one owner an epoch, one response, and an unsafe tool that is
// entered once: reads inform, only creates decide.
func TestReadsOfALaggingNodeDecideNothing(t *testing.T) {
	t.Parallel()
	lied := 0
	for seed := range uint64(200) {
		for _, effect := range []string{"unsafe", "idempotent"} {
			lied += raceOnALaggingNode(t, seed, effect)
		}
	}
	require.Greater(t, lied, 1000, "the node did not lag enough to show anything")
}

// raceOnALaggingNode delivers a turn to workers, some of which die, until one has ended it.
func raceOnALaggingNode(t *testing.T, seed uint64, effect string) (lied int) {
	t.Helper()
	s := &lagging{Memory: storetest.NewMemory(), rng: rand.New(rand.NewPCG(seed, 1))}
	dice := rand.New(rand.NewPCG(seed, 2))
	noWait := idempotency.Options{Pause: func(context.Context, time.Duration) error { return errTired }}
	entered, owners := 0, map[int]int{}
	var open []idempotency.Hold
	finish := func(h idempotency.Hold, what string) {
		if _, err := idempotency.New(s, "w", noWait).Finish(t.Context(), h, []byte(what)); err != nil {
			require.ErrorIs(t, err, errTired)
		}
	}
	for delivery := uint64(1); delivery <= 12; delivery++ {
		j := idempotency.New(s, fmt.Sprint("w", delivery), noWait)
		d, err := j.Claim(t.Context(), claim(effect, 1+delivery%2, delivery)) // the turn was published twice
		if err != nil {
			require.ErrorIs(t, err, errTired) // it could not find out, and leaves the message
			continue
		}
		switch d.Action {
		case idempotency.Run:
			entered++
			owners[d.Hold.Epoch]++
			if open = append(open, d.Hold); dice.IntN(2) == 0 {
				finish(d.Hold, "ended by its owner")
			}
		case idempotency.EndTurn:
			finish(d.Hold, "interrupted")
		case idempotency.Leave, idempotency.Done, idempotency.Duplicate, idempotency.Conflict, idempotency.Signalled, idempotency.Requeue:
		}
	}
	for _, h := range open { // owners that were thought dead
		finish(h, "ended late")
	}
	for epoch, n := range owners {
		require.Equal(t, 1, n, "owners of epoch %d, seed %d", epoch, seed)
	}
	if effect == "unsafe" {
		require.Equal(t, 1, entered, "seed %d", seed)
	}
	records, err := s.Memory.Scan(t.Context(), key, nil)
	require.NoError(t, err)
	responses := 0
	for _, r := range records {
		if strings.HasSuffix(r.Key, ".tool_response") {
			responses++
		}
	}
	require.Equal(t, 1, responses, "seed %d", seed)
	return s.lied
}

var errTired = errors.New("the store does not answer")

// staleOnce is a store whose next scan, after a record was created, gives the journal as it was at a sequence.
type staleOnce struct {
	*storetest.Memory

	after string // key of the record
	until uint64
	lie   bool
}

func (s *staleOnce) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	seq, err := s.Memory.Create(ctx, r)
	s.lie = s.lie || err == nil && r.Key == s.after
	return seq, err
}

func (s *staleOnce) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	records, err := s.Memory.Scan(ctx, key, known)
	if s.lie {
		s.lie = false
		return slices.DeleteFunc(records, func(r idempotency.Record) bool { return r.Seq > s.until }), err
	}
	return records, err
}

// An owner that was woken in epoch 1 parks in epoch 2. A read without epoch 2 would find the owner woken, and the answer
// would continue nothing.
func TestAnswerContinuesAParkedTurnThoughItsFirstReadIsStale(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "replay")
	asks(t, s, h, "a", "b")
	answered(t, s, answerTo("a", "yes", 2, 1))
	before := load(t, s)
	takes(t, s, h, "a")
	require.True(t, parks(t, s, &h, "b"))
	require.Equal(t, 2, h.Epoch)

	stale := &staleOnce{Memory: s, after: key.Public("ack", "b"), until: before.Records[len(before.Records)-1].Seq}
	v, err := newJournal(stale).Answer(t.Context(), answerTo("b", "yes", 3, 1))
	require.NoError(t, err)
	require.Equal(t, idempotency.Run, v.Action)
	require.Equal(t, 3, v.Hold.Epoch)
}
