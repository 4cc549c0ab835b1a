package idempotency

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Park lets a turn go until one of its open questions is decided, or somebody cancels it. If it
// reports true, the turn is parked with the given state, JSON, which a resume finds in [Turn.State]:
// the message is acknowledged, and all that the run holds is freed. If it reports false, a
// question was decided in the meantime: the run looks at them again and goes on.
//
// The same key decides between the owner that lets go and the word that wakes it. An owner
// that was woken and has to wait again continues as the next epoch under its own lease, and
// looks again before it parks as that one: whoever stored an answer before the next epoch began
// has woken the last one, and has gone. H is that epoch afterwards.
//
// Open must name all questions that the tool waits for: nothing else wakes the turn. A tool with effect unsafe is never
// parked; it waits in memory. For errors see [Journal.Ask].
func (j *Journal) Park(ctx context.Context, h *Hold, open []string, state json.RawMessage) (parked bool, err error) {
	if !reenterable(h.Effect) {
		return false, fmt.Errorf("journal: park %s: a tool with effect %q cannot be entered again; let it wait in memory", h.Key, h.Effect)
	}
	if len(open) == 0 {
		return false, fmt.Errorf("journal: park %s: no question is open: nothing would ever wake the turn", h.Key)
	}
	p := parking{State: state}
	for _, id := range open {
		p.Open = append(p.Open, subjects.Token(id))
	}
	data, err := json.Marshal(p)
	if err != nil {
		return false, fmt.Errorf("journal: park %s: the state is no JSON: %w", h.Key, err)
	}
	for {
		meta := h.meta()
		meta.Verdict = ParkParked
		_, rival, err := j.create(ctx, Record{Key: h.Key.Private(events.RecordPark, strconv.Itoa(h.Epoch)), Meta: meta, Data: data}, h.Claim)
		switch {
		case err != nil:
			return false, err
		case rival == nil:
			return true, nil
		case rival.Err != nil || rival.Meta.Verdict != ParkWoken: // sealed: the turn is taken over
			return false, ErrLost
		}
		if decided, err := j.anyDecided(ctx, *h, open); decided || err != nil {
			return false, err
		}
		switch won, err := j.own(ctx, Claim{Key: h.Key, Lease: h.Lease, Trace: h.Trace}, h); {
		case err != nil:
			return false, err
		case !won:
			return false, ErrLost
		}
		if decided, err := j.decidedSince(ctx, *h, p.Open); decided || err != nil {
			return false, err
		}
	}
}

// anyDecided looks whether one of the questions is decided.
func (j *Journal) anyDecided(ctx context.Context, h Hold, open []string) (bool, error) {
	replies, err := j.replies(ctx, h, open...)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(replies, func(r Reply) bool { return r.Outcome != Open }), nil
}

// decidedSince is anyDecided by a read that has the epoch of the hold: nobody wakes that epoch for
// what was stored before it. Open are tokens.
func (j *Journal) decidedSince(ctx context.Context, h Hold, open []string) (bool, error) {
	t, err := j.reload(ctx, h)
	switch {
	case err != nil:
		return false, err
	case t.Response != nil:
		return false, ErrLost
	case t.Cancel != nil:
		return false, errCancelled
	}
	for _, token := range open {
		q := t.questions[token]
		if q == nil {
			continue
		}
		if reply, err := replyOf(q.answer); err != nil || reply.Outcome != Open {
			return true, err
		}
	}
	return false, nil
}
