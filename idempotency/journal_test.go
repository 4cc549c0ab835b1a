package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleJournal_Claim() {
	ctx := context.Background()
	journal := idempotency.New(storetest.NewMemory(), "worker-1", idempotency.Options{})
	key := subjects.TurnKey("default", "chat-1", "", "turn-1")
	claim := func(seq uint64) idempotency.Decision {
		d, err := journal.Claim(ctx, idempotency.Claim{
			Key: key, Lease: idempotency.Lease{Stream: "ONETURN_IN", Seq: seq, Delivery: 1}, Effect: "unsafe",
		})
		if err != nil {
			panic(err)
		}
		return d
	}
	first := claim(1)
	fmt.Println("first publish:", first.Action)
	fmt.Println("same turn published again:", claim(2).Action)
	stored, _ := journal.Finish(ctx, first.Hold, []byte(`{"type":"chat.tool_response"}`))
	fmt.Println("response stored:", stored)
	fmt.Println("and again, later:", claim(3).Action)
	// Output:
	// first publish: run
	// same turn published again: duplicate
	// response stored: true
	// and again, later: done
}

func TestMemoryKeepsTheStoreContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) idempotency.Store { return storetest.NewMemory() })
}

var key = subjects.TurnKey("app", "chat", "", "turn")

func claim(effect string, seq, delivery uint64) idempotency.Claim {
	return idempotency.Claim{
		Key: key, Lease: idempotency.Lease{Stream: "IN", Seq: seq, Delivery: delivery},
		Effect: effect, Fingerprint: "f1", Event: []byte(`{}`),
	}
}

func newJournal(s idempotency.Store) *idempotency.Journal {
	return idempotency.New(s, "w", idempotency.Options{})
}

func decide(t *testing.T, s idempotency.Store, c idempotency.Claim) idempotency.Decision {
	t.Helper()
	d, err := newJournal(s).Claim(t.Context(), c)
	require.NoError(t, err)
	return d
}

// docs/journal.md#rule-4: what a redelivery does after its worker died inside the tool.
func TestRedeliveryOfAClaimedTurnFollowsTheEffect(t *testing.T) {
	t.Parallel()
	for effect, want := range map[string]idempotency.Action{
		"unsafe": idempotency.EndTurn, "replay": idempotency.EndTurn, "": idempotency.EndTurn, "no such effect": idempotency.EndTurn,
		"keyed": idempotency.Run, "idempotent": idempotency.Run, "none": idempotency.Run,
	} {
		s := storetest.NewMemory()
		first := decide(t, s, claim(effect, 1, 1))
		require.Equal(t, idempotency.Run, first.Action)
		d := decide(t, s, claim(effect, 1, 2))
		require.Equal(t, want, d.Action, effect)
		if want == idempotency.EndTurn {
			require.Equal(t, events.CodeInterrupted, d.Code)
			continue
		}
		require.Equal(t, 2, d.Hold.Epoch)
		require.Greater(t, d.Hold.Token, first.Hold.Token)
	}
}

func TestReplayToolIsEnteredAgainOnlyWhileItWaits(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	require.Equal(t, idempotency.Run, decide(t, s, claim("replay", 1, 1)).Action)
	put := func(k string) {
		_, err := s.Create(t.Context(), idempotency.Record{Key: k, Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1}})
		require.NoError(t, err)
	}
	put(key.Public("ask", "q1"))
	require.Equal(t, idempotency.Run, decide(t, s, claim("replay", 1, 2)).Action)
	put(key.Private("taken", "q1"))
	d := decide(t, s, claim("replay", 1, 3))
	require.Equal(t, idempotency.EndTurn, d.Action)
	require.Equal(t, events.CodeInterrupted, d.Code)
}

func TestOnlyTheNewestLeaseTakesOver(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	require.Equal(t, idempotency.Run, decide(t, s, claim("idempotent", 1, 1)).Action)
	require.Equal(t, idempotency.Leave, decide(t, s, claim("idempotent", 1, 1)).Action, "the same delivery")
	require.Equal(t, idempotency.Duplicate, decide(t, s, claim("idempotent", 2, 9)).Action, "another publish of the turn")
	require.Equal(t, idempotency.Run, decide(t, s, claim("idempotent", 1, 3)).Action)
	require.Equal(t, idempotency.Leave, decide(t, s, claim("idempotent", 1, 2)).Action, "a delivery that came late")
}

// F03: see docs/faults.md.
func TestFirstResponseIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	j := newJournal(s)
	first := decide(t, s, claim("idempotent", 1, 1))
	second := decide(t, s, claim("idempotent", 1, 2))
	stored, err := j.Finish(t.Context(), second.Hold, []byte("second"))
	require.NoError(t, err)
	require.True(t, stored)
	stored, err = j.Finish(t.Context(), second.Hold, []byte("second"))
	require.NoError(t, err)
	require.True(t, stored, "our own, sent again")
	stored, err = j.Finish(t.Context(), first.Hold, []byte("first, late"))
	require.NoError(t, err)
	require.False(t, stored)
	r, err := s.Last(t.Context(), key.Public("tool_response"))
	require.NoError(t, err)
	require.Equal(t, "second", string(r.Data))
	require.Equal(t, idempotency.Done, decide(t, s, claim("idempotent", 1, 3)).Action)
}

// F07: see docs/faults.md.
func TestSameKeyWithOtherDataIsAConflictBeforeAndAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	first := decide(t, s, claim("unsafe", 1, 1))
	other := claim("unsafe", 2, 1)
	other.Fingerprint = "f2"
	require.Equal(t, idempotency.Conflict, decide(t, s, other).Action)
	_, err := newJournal(s).Finish(t.Context(), first.Hold, nil)
	require.NoError(t, err)
	require.Equal(t, idempotency.Conflict, decide(t, s, other).Action)
}

// TestDeliveriesOfOneMessageMakeOneTurnWhateverDataEachHas: of two workers that correct one output, one may have found no model to ask.
func TestDeliveriesOfOneMessageMakeOneTurnWhateverDataEachHas(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	first := claim("idempotent", 1, 1)
	first.Message = "message-0-m1"
	run := decide(t, s, first)
	other := claim("idempotent", 2, 1)
	other.Fingerprint, other.Message = "f2", first.Message
	require.Equal(t, idempotency.Duplicate, decide(t, s, other).Action)
	again := claim("idempotent", 1, 2)
	again.Fingerprint, again.Message = "f2", first.Message
	taken := decide(t, s, again)
	require.Equal(t, idempotency.Run, taken.Action)
	require.Equal(t, "f1", taken.Hold.Fingerprint, "the claim counts")
	another := claim("idempotent", 3, 1)
	another.Fingerprint, another.Message = "f2", "message-0-m2"
	require.Equal(t, idempotency.Conflict, decide(t, s, another).Action)
	_, err := newJournal(s).Finish(t.Context(), taken.Hold, nil)
	require.NoError(t, err)
	require.Equal(t, idempotency.Done, decide(t, s, other).Action)
	require.NotEqual(t, run.Hold.Nonce, taken.Hold.Nonce)
}

// TestRejectedTurnEndsFromItsStoredVerdict: a worker with other manifests finishes with the
// code of the claim and never runs the tool.
func TestRejectedTurnEndsFromItsStoredVerdict(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	rejected := claim("", 1, 1)
	rejected.RejectCode = string(events.CodeValidationFailed)
	d := decide(t, s, rejected)
	require.Equal(t, idempotency.EndTurn, d.Action)
	require.Equal(t, events.CodeValidationFailed, d.Code)
	d = decide(t, s, claim("idempotent", 1, 2))
	require.Equal(t, idempotency.EndTurn, d.Action)
	require.Equal(t, events.CodeValidationFailed, d.Code)
	require.NotNil(t, d.Turn.Claim)
}

func TestTurnEndsAfterTooManyTakeovers(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	for delivery := uint64(1); delivery <= idempotency.DefaultMaxTakeovers+1; delivery++ {
		require.Equal(t, idempotency.Run, decide(t, s, claim("idempotent", 1, delivery)).Action)
	}
	d := decide(t, s, claim("idempotent", 1, 100))
	require.Equal(t, idempotency.EndTurn, d.Action)
	require.Equal(t, events.CodeInterrupted, d.Code)
}

func TestCancelEndsAnUnclaimedTurnAndSignalsAnOwner(t *testing.T) {
	t.Parallel()
	cancel := claim("", 5, 1)
	cancel.Fingerprint, cancel.RejectCode, cancel.Signal = "", string(events.CodeCancelled), true
	run := func(t *testing.T, s idempotency.Store) idempotency.Decision {
		t.Helper()
		require.NoError(t, newJournal(s).Cancel(t.Context(), cancel, []byte(`{}`)))
		return decide(t, s, cancel)
	}
	t.Run("unclaimed", func(t *testing.T) {
		t.Parallel()
		s := storetest.NewMemory()
		d := run(t, s)
		require.Equal(t, idempotency.EndTurn, d.Action)
		require.Equal(t, events.CodeCancelled, d.Code)
		_, err := newJournal(s).Finish(t.Context(), d.Hold, nil)
		require.NoError(t, err)
		require.Equal(t, idempotency.Done, decide(t, s, claim("idempotent", 1, 1)).Action)
	})
	t.Run("running", func(t *testing.T) {
		t.Parallel()
		s := storetest.NewMemory()
		first := decide(t, s, claim("idempotent", 1, 1))
		require.Equal(t, idempotency.Signalled, run(t, s).Action)
		seen, err := newJournal(s).Cancelled(t.Context(), first.Hold)
		require.NoError(t, err)
		require.True(t, seen)
		d := decide(t, s, claim("idempotent", 1, 2))
		require.Equal(t, idempotency.EndTurn, d.Action, "a takeover does not run a cancelled turn")
		require.Equal(t, events.CodeCancelled, d.Code)
	})
	// Found by simulation: the cancel is stored before the claim, and a takeover has to see it all the same.
	t.Run("cancel before the claim", func(t *testing.T) {
		t.Parallel()
		for _, effect := range []string{"idempotent", "unsafe"} {
			s := storetest.NewMemory()
			require.NoError(t, newJournal(s).Cancel(t.Context(), cancel, []byte(`{}`)))
			require.Equal(t, idempotency.Run, decide(t, s, claim(effect, 1, 1)).Action)
			require.Equal(t, idempotency.Signalled, decide(t, s, cancel).Action)
			d := decide(t, s, claim(effect, 1, 2))
			require.Equal(t, idempotency.EndTurn, d.Action, effect)
			require.Equal(t, events.CodeCancelled, d.Code, effect)
		}
	})
	t.Run("parked", func(t *testing.T) {
		t.Parallel()
		s := storetest.NewMemory()
		require.Equal(t, idempotency.Run, decide(t, s, claim("replay", 1, 1)).Action)
		_, err := s.Create(t.Context(), idempotency.Record{
			Key:  key.Private("park", "1"),
			Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: "parked"},
		})
		require.NoError(t, err)
		d := run(t, s)
		require.Equal(t, idempotency.EndTurn, d.Action)
		require.Equal(t, events.CodeCancelled, d.Code)
		require.Equal(t, 2, d.Hold.Epoch)
	})
	t.Run("sealed by a takeover under way", func(t *testing.T) {
		t.Parallel()
		s := storetest.NewMemory()
		require.Equal(t, idempotency.Run, decide(t, s, claim("keyed", 1, 1)).Action)
		_, err := s.Create(t.Context(), idempotency.Record{
			Key:  key.Private("park", "1"),
			Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: "sealed"},
		})
		require.NoError(t, err)
		require.Equal(t, idempotency.Signalled, run(t, s).Action)
		require.Equal(t, events.CodeCancelled, decide(t, s, claim("keyed", 1, 2)).Code)
	})
}

func TestParkedTurnIsNotTakenOverByItsTurnMessage(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	require.Equal(t, idempotency.Run, decide(t, s, claim("keyed", 1, 1)).Action)
	_, err := s.Create(t.Context(), idempotency.Record{
		Key:  key.Private("park", "1"),
		Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: "parked"},
	})
	require.NoError(t, err)
	require.Equal(t, idempotency.Done, decide(t, s, claim("keyed", 1, 2)).Action)
}

// failing is a store that stores and then fails, or fails before it stores.
type failing struct {
	*storetest.Memory
	after  int // this many creates are stored, but report an error
	before int // then this many are not stored
	wrong  bool
}

var errLost = errors.New("connection lost")

func (f *failing) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	switch {
	case f.before > 0:
		f.before--
		if f.wrong {
			return 0, idempotency.ErrUndecided
		}
		return 0, errLost
	case f.after > 0:
		f.after--
		_, _ = f.Memory.Create(ctx, r)
		return 0, errLost
	}
	return f.Memory.Create(ctx, r)
}

// F09: docs/journal.md#rule-5.
func TestWriteWithUnknownOutcomeIsSentAgainAndRecognised(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*failing{
		"stored, acknowledgement lost": {after: 1},
		"never arrived":                {before: 3},
		"rival in flight":              {before: 3, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f.Memory = storetest.NewMemory()
				unknown := 0
				j := idempotency.New(f, "w", idempotency.Options{OnUnknownWrite: func() { unknown++ }})
				d, err := j.Claim(t.Context(), claim("unsafe", 1, 1))
				require.NoError(t, err)
				require.Equal(t, idempotency.Run, d.Action)
				require.Equal(t, uint64(1), d.Hold.Token)
				if !f.wrong {
					require.Positive(t, unknown)
				}
			})
		})
	}
}

func TestUnreachableStoreNeverDecides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failing{Memory: storetest.NewMemory(), before: 1 << 30}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := newJournal(f).Claim(ctx, claim("unsafe", 1, 1))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errLost)
	})
}

// F20: see docs/faults.md.
func TestUnreadableClaimFailsClosed(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	_, err := s.Create(t.Context(), idempotency.Record{Key: key.Public("tool_call"), Err: errors.New("damaged")})
	require.NoError(t, err)
	d := decide(t, s, claim("idempotent", 1, 2))
	require.Equal(t, idempotency.EndTurn, d.Action)
	require.Equal(t, events.CodeStateCorrupt, d.Code)
}

func TestContextChangesAreStoredOncePerEpoch(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	j := newJournal(s)
	d := decide(t, s, claim("idempotent", 1, 1))
	seq, err := j.Delta(t.Context(), d.Hold, []byte(`{"set":{"x":1}}`))
	require.NoError(t, err)
	again, err := j.Delta(t.Context(), d.Hold, []byte(`{"set":{"x":1}}`))
	require.NoError(t, err)
	require.Equal(t, seq, again)
	d = decide(t, s, claim("idempotent", 1, 2))
	next, err := j.Delta(t.Context(), d.Hold, []byte(`{"set":{"x":2}}`))
	require.NoError(t, err)
	require.Greater(t, next, seq)
}

// A record whose name has an id that its kind does not have is none of the turn: it replaces no claim, response or cancel.
func TestRecordsThatNoRuleCreatesReplaceNone(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	decide(t, s, claim("idempotent", 1, 1))
	for _, name := range []string{key.Public("tool_call", "1"), key.Public("tool_response", "1"), key.Private("tool_response"), key.Public("cancel", "1")} {
		_, err := s.Create(t.Context(), idempotency.Record{Key: name, Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1}})
		require.NoError(t, err)
	}
	turn := load(t, s)
	require.Equal(t, key.Public("tool_call"), turn.Claim.Key)
	require.Nil(t, turn.Response)
	require.Nil(t, turn.Cancel)
	require.Equal(t, idempotency.Run, decide(t, s, claim("idempotent", 1, 2)).Action)
}
