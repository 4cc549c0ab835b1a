package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/subjects"
)

// sweptTurn is a turn of which sweeps have to know.
type sweptTurn struct {
	key    subjects.Key
	lease  uint64 // message that holds it, while it is in the stream
	resume uint64 // the last one, while it is in the stream
	parked bool
	ended  bool
}

// orphan reports whether nothing but a sweep ends the turn.
func (o *sweptTurn) orphan() bool { return !o.ended && !o.parked && o.lease == 0 && o.resume == 0 }

// sweptWorld has turns change at random between sweeps of a small budget, some of which are stopped.
type sweptWorld struct {
	*testSweep

	random *rand.Rand
	in     jetstream.Stream
	turns  []*sweptTurn
	wrong  []string // what no sweep may do
}

func newSweptWorld(t *testing.T, seed uint64) *sweptWorld {
	t.Helper()
	b := newTestSweep(t)
	b.Rate, b.PageTurns = 0, 3
	in, err := b.JS.Stream(t.Context(), b.Space.InStream())
	require.NoError(t, err)
	return &sweptWorld{testSweep: b, random: rand.New(rand.NewPCG(seed, 0)), in: in}
}

func (w *sweptWorld) message() uint64 {
	w.t.Helper()
	ack, err := w.JS.Publish(w.t.Context(), "oneturn.in.default.x.app.w.c", []byte("{}"))
	require.NoError(w.t, err)
	return ack.Sequence
}

func (w *sweptWorld) lose(seq *uint64) {
	w.t.Helper()
	if *seq > 0 {
		require.NoError(w.t, w.in.DeleteMsg(w.t.Context(), *seq))
		*seq = 0
	}
}

func (w *sweptWorld) store(key, outcome, data string, lease uint64) {
	w.t.Helper()
	meta := idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: outcome}
	if lease > 0 {
		meta.Effect, meta.Lease = "replay", idempotency.Lease{Stream: w.Space.InStream(), Seq: lease, Delivery: 1}
	}
	_, err := w.Store.Create(w.t.Context(), idempotency.Record{Key: key, Data: []byte(data), Meta: meta})
	require.NoError(w.t, err)
}

// claim begins a turn.
func (w *sweptWorld) claim() {
	o := &sweptTurn{key: subjects.TurnKey("app", fmt.Sprintf("chat-%d", len(w.turns)), "", "turn"), lease: w.message()}
	w.store(o.key.Public(events.KindToolCall), "", `{}`, o.lease)
	w.turns = append(w.turns, o)
}

// happens has something happen to a turn.
func (w *sweptWorld) happens(o *sweptTurn) {
	switch n := w.random.IntN(4); {
	case o.ended:
	case n == 0 && o.parked: // answered, and the message of the answer is lost
		w.store(o.key.Public("answer", "1"), string(idempotency.Answered), `"yes"`, 0)
		o.parked = false
	case o.parked:
	case n == 0 && o.lease > 0:
		w.store(o.key.Public("ask", "1"), "", `{}`, 0)
		w.store(o.key.Private("park", "1"), "parked", `{"open":["1"]}`, 0)
		o.parked = true
		w.lose(&o.lease)
	case n == 1: // taken, and lost with its worker
		w.lose(&o.lease)
		w.lose(&o.resume)
	case n == 2:
		w.store(o.key.Public(events.KindToolResponse), "", `{}`, 0)
		o.ended = true
		w.lose(&o.lease)
		w.lose(&o.resume)
	}
}

// swept sweeps once. A sweep may be stopped in the middle.
func (w *sweptWorld) swept(budget int, stop bool) sweep.Swept {
	w.t.Helper()
	w.Budget = budget
	ctx, cancel := context.WithCancelCause(w.t.Context())
	defer cancel(nil)
	after := w.random.IntN(4)
	out, err := w.Run(ctx, w.pages(), later(), sweep.Scope{}, func(ctx context.Context, f sweep.Finding) (uint64, error) {
		for _, o := range w.turns {
			if o.key != f.Key {
				continue
			}
			if !o.orphan() {
				w.wrong = append(w.wrong, fmt.Sprintf("%s is resumed: %+v", f.Key, *o))
			}
			if after--; stop && after < 0 {
				cancel(errors.New("the worker stops"))
				return 0, context.Cause(ctx)
			}
			seq, err := w.Resume(ctx, f)
			o.resume = seq
			return seq, err
		}
		w.wrong = append(w.wrong, fmt.Sprintf("%s is resumed, which is not a turn", f.Key))
		return 0, nil
	})
	if ctx.Err() == nil {
		require.NoError(w.t, err)
	}
	return out
}

// sweepTurns has turns live through sweeps and returns what was wrong with these.
func sweepTurns(t *testing.T, seed uint64) []string {
	t.Helper()
	w := newSweptWorld(t, seed)
	for range 12 {
		for range w.random.IntN(6) {
			w.claim()
		}
		for range w.random.IntN(6) {
			if len(w.turns) > 0 {
				w.happens(w.turns[w.random.IntN(len(w.turns))])
			}
		}
		w.swept(1+w.random.IntN(4), w.random.IntN(3) == 0)
	}
	// Nothing happens any more: each page is looked at within as many sweeps as there are pages.
	for range len(w.turns) {
		w.swept(1, false)
	}
	open := 0
	for _, o := range w.turns {
		if !o.ended {
			open++
		}
		if o.orphan() {
			w.wrong = append(w.wrong, fmt.Sprintf("%s is never resumed", o.key))
		}
	}
	if last := w.swept(0, false); last.Open != open {
		w.wrong = append(w.wrong, fmt.Sprintf("%d turns are open, the sweeps know %d", open, last.Open))
	}
	return w.wrong
}

func TestSweepsResumeEachOrphanOnceWhateverTheyComeTo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			require.Empty(t, sweepTurns(t, seed))
		})
	}
}
