package idempotency

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/defaults"
)

// A cancel is stored under its own key, before any claim of the canceller (docs/journal.md#rule-17), and then signals
// the owner of the turn as an answer does. It may be older than the claim that it is about, and may be stored after the
// response: it names the claim that was stored at that time.

// cancels reports whether the message itself is a cancel.
func (c *Claim) cancels() bool { return c.Signal && c.question == (QuestionRef{}) }

// Cancel stores the request to end a turn. It precedes any claim of the canceller, so every later owner reads it. Nothing is
// stored for a turn that has ended and has no open questions.
func (j *Journal) Cancel(ctx context.Context, c Claim, event []byte) error {
	t, err := j.Load(ctx, c.Key)
	if err != nil || t.Cancel != nil || t.Claim != nil && t.Response != nil && !t.hasOpenQuestion() {
		return err
	}
	generation := generationOf(t.Claim)
	meta := Meta{Nonce: NewNonce(), Epoch: noOwner, Lease: c.Lease, Claim: generation, Trace: c.Trace}
	cancel := Record{Key: c.Key.Public(events.RecordCancel), Meta: meta, Data: event}
	_, rival, err := j.create(ctx, cancel, generation)
	if err == nil && rival != nil && !cancels(rival, t.Response, t.Claim) { // of an earlier generation, but stored after this claim
		cancel.Seq = rival.Seq
		_, _, err = j.create(ctx, cancel, generation)
	}
	return err
}

// Cancelled reports whether a cancel of the turn is stored.
func (j *Journal) Cancelled(ctx context.Context, hold Hold) (bool, error) {
	turn := hold.Key.OfTurn()
	cancel, err := j.last(ctx, turn.Public(events.RecordCancel))
	if err != nil || cancel == nil {
		return false, err
	}
	response, err := j.last(ctx, turn.Public(events.RecordResponse))
	if err != nil {
		return false, err
	}
	return j.cancelsHeld(ctx, cancel, response, &hold)
}

// cancelAhead is how long before the claim a cancel that names no claim may be stored: the longest time that an inbound
// message waits by default.
const cancelAhead = defaults.MaxEventAge

// cancels reports whether a cancel (nil: none) is about the turn with a claim (nil: not known). A cancel names the claim that
// was stored before it; its sequence is not enough, because a cancel after the end of its turn outlives claim and
// response. A cancel that names no claim was stored before the claim: it is about another turn if a response of an
// earlier generation followed it, or if it is older than any message of this turn can be.
func cancels(cancel, response, claim *Record) bool {
	generation := generationOf(claim)
	switch {
	case cancel == nil:
		return false
	case generation == 0, cancel.Err != nil:
		return true
	case cancel.Meta.Claim != 0:
		return cancel.Meta.Claim == generation
	case !cancel.Former(generation):
		return true
	}
	return claim.Time.Sub(cancel.Time) <= cancelAhead &&
		(response == nil || !cancel.Former(response.Seq) || !response.Former(generation))
}

// cancelsHeld is cancels for the turn of a hold, whose claim is read only if it matters. The read is repeated until it
// succeeds or ctx ends.
func (j *Journal) cancelsHeld(ctx context.Context, cancel, response *Record, h *Hold) (bool, error) {
	if cancel == nil {
		return false, nil
	}
	claim := &Record{Seq: h.Claim}
	if cancel.Meta.Claim == 0 && cancel.Former(h.Claim) {
		err := j.retryRead(ctx, func() (err error) {
			*claim, err = j.store.At(ctx, h.Claim)
			return err
		})
		switch {
		case errors.Is(err, ErrNotFound): // damaged or expired since: the cancel stands
			return true, nil
		case err != nil:
			return false, err
		}
	}
	return cancels(cancel, response, claim), nil
}

// closeQuestions decides the given questions, unless they are decided: all of a cancelled turn, or all of a step that has ended.
func (j *Journal) closeQuestions(ctx context.Context, c *Claim, t *Turn, questions []QuestionState) error {
	for _, q := range questions {
		if q.Ack != nil {
			continue
		}
		answer := Record{Meta: Meta{Nonce: NewNonce(), Epoch: noOwner, Lease: c.Lease, Outcome: string(Cancelled), Trace: c.Trace}}
		if q.Answer != nil {
			answer = *q.Answer
		}
		if _, _, err := j.settle(ctx, c, t, QuestionRef{Call: q.Call.Call, Token: q.Token}, answer); err != nil {
			return err
		}
	}
	return nil
}

var errCancelled = &events.Error{Code: events.CodeCancelled, Op: "journal", Msg: "the turn was cancelled"}
