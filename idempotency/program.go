package idempotency

import (
	"context"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A turn whose tool is a program (effect program) may always be entered again: what counts is what each step of it has
// stored. The owner of the turn writes these records, in this order, and awaits each one before the next:
//
//	program (StoreProgram)          the program, before its first step; the next owner runs the stored one
//	tool_call of a step (Enter)     before the tool of the step is entered
//	tool_response of it (EndStep)   after that; what refers to the step uses the stored response
//	answer, ack (CloseQuestions)    of the questions of the step that are open then: nothing waits for them any more
//	tool_response of the turn       the finish; before it, steps without a response get one (CloseSteps)
//
// A step has no separate lease, epoch or fencing token: it uses the ones of its turn. What happens to a step that an earlier
// owner has called and not ended is decided by the effect in its tool_call (docs/journal.md#rule-4).

// StoreProgram stores the event that has the program of the turn, and returns the record that counts: the one of an earlier
// owner, if it has stored one.
func (j *Journal) StoreProgram(ctx context.Context, h Hold, event []byte) (Record, error) {
	return j.storeOnce(ctx, h, events.RecordProgram, event)
}

// StoreResult stores, likewise, the event that has the result of the program, before an agent responds to it.
func (j *Journal) StoreResult(ctx context.Context, h Hold, event []byte) (Record, error) {
	return j.storeOnce(ctx, h, events.RecordResult, event)
}

// storeOnce stores a record unless it is stored, and returns the one that counts.
func (j *Journal) storeOnce(ctx context.Context, h Hold, kind string, event []byte) (Record, error) {
	r, _, err := j.createPublic(ctx, h, kind, event)
	return r, err
}

// createPublic creates a public record of the call of the hold. It returns the record that is stored, and whether it is the given one.
func (j *Journal) createPublic(ctx context.Context, h Hold, kind string, event []byte) (stored Record, own bool, err error) {
	r := Record{Key: h.Key.Public(kind), Meta: h.meta(), Data: event}
	seq, rival, err := j.create(ctx, r, h.Claim)
	switch {
	case err != nil:
		return Record{}, false, err
	case rival == nil:
		r.Seq = seq
		return r, true, nil
	case rival.Err != nil:
		return Record{}, false, corrupt(rival)
	}
	return *rival, false, nil
}

// ForStep returns the hold under which a step of the turn writes, with the effect of its tool.
func (h *Hold) ForStep(call, effect string) Hold {
	step := *h
	step.Key, step.Effect = h.Key.WithCall(call), effect
	return step
}

// StepCall is the request of the owner of a turn to enter the tool of a step.
type StepCall struct {
	Event  []byte // the tool_call event of the step
	Digest string // of the manifests that bound its tool
	// Interrupted returns the response of a step that an earlier owner has called and that must not be entered again.
	Interrupted func(called *Record) ([]byte, error)
	// Known is the turn as its owner has read it when its epoch began, nil for a turn that had no owner before.
	Known *Turn
	// Since is the sequence of the newest record of a step that the owner knows of, 0 if of none: a read that decides about a step of
	// an earlier owner shows that one.
	Since uint64
}

// StepEntry is what [Journal.Enter] has decided.
type StepEntry struct {
	// Response is the response of a step that has ended: its tool is not entered. Otherwise it is.
	Response *Record
	// Called is the tool_call of an earlier owner: if the tool is entered again, then with its arguments. Nil: with the arguments of the event.
	Called *Record
	// Seq is the sequence of the tool_call of the step.
	Seq uint64
	// Effect is the one under which the tool is entered: the stricter one of today's and the one of Called.
	Effect string
}

// Enter stores the tool_call of a step. The hold is the one of the step ([Hold.ForStep]), with the effect that its tool has
// today. It fails with [ErrLost] if a newer owner has called the step, or another worker ends the turn.
func (j *Journal) Enter(ctx context.Context, h Hold, s StepCall) (StepEntry, error) {
	meta := h.meta()
	meta.Effect, meta.Digest = h.Effect, s.Digest
	seq, found, called, err := j.createOrFind(ctx, Record{Key: h.Key.Public(events.RecordCall), Meta: meta, Data: s.Event}, h.Claim)
	if err == nil && found {
		if _, ended, err := j.response(ctx, h.Key, h.Claim); err != nil {
			return StepEntry{}, err
		} else if ended {
			return StepEntry{}, ErrLost
		}
	}
	switch {
	case err != nil:
		return StepEntry{}, err
	case called == nil:
		return StepEntry{Effect: h.Effect, Seq: seq}, nil
	case called.Err != nil:
		return StepEntry{}, corrupt(called)
	}
	response, err := j.responseOf(ctx, h, s, called)
	switch {
	case err != nil:
		return StepEntry{}, err
	case response != nil && response.Err != nil:
		return StepEntry{}, corrupt(response)
	case response != nil:
		return StepEntry{Response: response, Called: called, Seq: called.Seq}, nil
	case called.Meta.Epoch >= h.Epoch: // a newer owner, or a worker that only ends the turn
		return StepEntry{}, ErrLost
	}
	return j.enterAgain(ctx, h, s, called)
}

// responseOf returns the response of a step that was called before, nil if it has not ended. The read shows what the owner knows of the
// turn, and so everything that was stored before that.
func (j *Journal) responseOf(ctx context.Context, h Hold, s StepCall, called *Record) (*Record, error) {
	if c := s.Known.CallOf(h.Key); c != nil && c.Response != nil {
		return c.Response, nil
	}
	t, err := j.readUntil(ctx, h.Key, max(h.Token, s.Since, called.Seq), s.Known)
	switch c := t.CallOf(h.Key); {
	case err != nil:
		return nil, err
	case t.Response != nil: // of the turn
		return nil, ErrLost
	case c != nil:
		return c.Response, nil
	}
	return nil, nil //nolint:nilnil // its records have expired
}

// enterAgain decides about a step that an earlier owner has called and not ended.
func (j *Journal) enterAgain(ctx context.Context, h Hold, s StepCall, called *Record) (StepEntry, error) {
	h.Effect = stricter(called.Meta.Effect, h.Effect)
	again := reenterable(h.Effect)
	if h.Effect == string(events.EffectReplay) {
		c := s.Known.CallOf(h.Key)
		again = c != nil && s.Known.mayReplay(c, h.Nonce)
	}
	if again {
		return StepEntry{Called: called, Effect: h.Effect, Seq: called.Seq}, nil
	}
	event, err := s.Interrupted(called)
	if err != nil {
		return StepEntry{}, err
	}
	response, err := j.EndStep(ctx, h, event)
	if err != nil {
		return StepEntry{}, err
	}
	return StepEntry{Response: &response, Called: called, Seq: called.Seq}, nil
}

// EndStep stores the response of a step and returns the one that counts: the given one, or the one of an earlier owner, whose
// tool was faster than its end became known. It fails with [ErrLost] if the turn has another owner now, or ends, and with
// [ErrRefused] for a response that can never be stored.
func (j *Journal) EndStep(ctx context.Context, h Hold, event []byte) (Record, error) {
	r, own, err := j.createPublic(ctx, h, events.RecordResponse, event)
	if err == nil && !own && r.Meta.Epoch >= h.Epoch {
		return Record{}, ErrLost
	}
	return r, err
}

// ReadSteps returns steps by their keys, nil for those without records, as the leader knows them. Of a group in which the first
// success counts, it is the one with the lowest sequence. Since is the sequence of a record of the turn that the caller knows of:
// the read shows that one, and so everything that was stored before it. Known is an earlier read of the turn, or nil. If a leader
// that was replaced continues to answer without the record, ReadSteps fails with [ErrStale].
func (j *Journal) ReadSteps(ctx context.Context, h Hold, since uint64, known *Turn, steps ...subjects.Key) ([]*Call, error) {
	t, err := j.readUntil(ctx, h.Key, since, known)
	if err != nil {
		return nil, err
	}
	calls := make([]*Call, len(steps))
	for i, key := range steps {
		calls[i] = t.CallOf(key)
	}
	return calls, nil
}

// CloseQuestions decides the open questions of a step that has ended, as cancelled: nothing waits for their answers any more. The
// hold is the one of the step, since the sequence of its response. Ack returns the public event that closes a question.
func (j *Journal) CloseQuestions(ctx context.Context, h Hold, since uint64, known *Turn, ack func(decided Record) ([]byte, error)) error {
	t, err := j.readUntil(ctx, h.Key, since, known)
	if err != nil {
		return err
	}
	return j.closeQuestions(ctx, &Claim{Key: t.Key, Lease: h.Lease, Trace: h.Trace, Ack: ack}, t, t.CallOf(h.Key).Questions())
}

// CloseSteps stores a response for each step that was called and has none, so that the response of the turn, which the caller
// stores next, is the last one. Event returns the response of a step. It reads the turn for that, and does nothing for one that
// has ended or has more records than one read returns. Since is the sequence of the newest record of the turn that the caller knows
// of, 0 if of none: the read shows that one, and so every step that was called before it. If a leader that was replaced continues to
// answer without it, CloseSteps fails with [ErrStale].
//
// It returns the turn as it is then, with the responses that count.
func (j *Journal) CloseSteps(ctx context.Context, h Hold, since uint64, event func(step *Call) ([]byte, error)) (*Turn, error) {
	t, err := j.readUntil(ctx, h.Key, max(h.Token, h.Claim), nil)
	if err != nil || t.Response != nil || t.oversized {
		return t, err
	}
	if !t.holds(since) {
		if t, err = j.readUntil(ctx, h.Key, since, t); err != nil || t.Response != nil {
			return t, err
		}
	}
	var failed []error
	var closed []*Record
	for _, step := range t.Steps() {
		if step.Called == nil || step.Response != nil {
			continue
		}
		response, err := event(step)
		if err != nil {
			failed = append(failed, fmt.Errorf("journal: end step %s: %w", step.Key, err))
			continue
		}
		r := Record{Key: step.Key.Public(events.RecordResponse), Meta: h.meta(), Data: response}
		seq, rival, err := j.create(ctx, r, h.Claim)
		switch r.Seq = seq; {
		case err != nil:
			failed = append(failed, err)
		case rival != nil:
			closed = append(closed, rival)
		default:
			closed = append(closed, &r)
		}
	}
	if len(closed) > 0 {
		t = newTurn(t.Key, inOrder(t.Records, closed))
	}
	return t, errors.Join(failed...)
}

// Waits reports whether a step was parked with its questions and none of them is decided since: it is not entered again. After a
// takeover that follows no parking, every step without a response is judged by its effect instead.
func (t *Turn) Waits(step *Call) bool {
	parked := t.park(t.Epoch - 1)
	if step == nil || parked == nil || parked.Err != nil || parked.Meta.Outcome != ParkParked {
		return false
	}
	waits := false
	for token, q := range step.questions {
		if parkedOn(parked, QuestionRef{Call: step.Key.Call, Token: token}) {
			if q.Answer != nil {
				return false
			}
			waits = true
		}
	}
	return waits
}
