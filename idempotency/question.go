package idempotency

import (
	"context"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// ErrLost says that the turn is another run's, or has ended: the run must stop and its message
// be left alone, neither acknowledged nor nak'ed.
var ErrLost = errors.New("journal: another run has the turn, or it has ended")

// Outcome is how a question was decided. The first stored one stands.
type Outcome string

// The outcomes.
const (
	Open      Outcome = "" // not decided yet
	Answered  Outcome = "answered"
	Expired   Outcome = "expired"   // handed to the tool like an answer
	Cancelled Outcome = "cancelled" // the turn was cancelled; nothing is handed to the tool
)

// Question is what a tool asks a person.
type Question struct {
	// ID is the same whenever the tool comes to this question, in whatever run: a name, or an
	// ordinal. It is unique within the call.
	ID string
	// Digest tells the content: the same id with another digest is another question. Every
	// subscriber can read it.
	Digest string
	Event  []byte // the chat.tool_call event that puts it on the screen
	// Known is what this run has read of the question since it owns the turn, see [Turn.Question]:
	// what an earlier run has asked is not stored once more.
	Known Inquiry
}

// Reply is what is known of a question.
type Reply struct {
	Outcome Outcome
	Data    []byte // as [Answer] gave it; nil while the question is open
}

// Ask stores a question, unless an earlier run has, and returns what is known of its answer. A
// question of the same id with another digest is an error: the tool does not ask in the order
// in which it did before.
//
// The errors of Ask, [Journal.Look], [Journal.Take] and [Journal.Park] are of two kinds. An
// [events.Error] says how the run has to end the turn: cancelled, interrupted, tool_error,
// state_corrupt. After any other error, [ErrLost] among them, the run must stop and leave its
// message alone: it does not know what is stored.
func (j *Journal) Ask(ctx context.Context, h Hold, q Question) (Reply, error) {
	reply, err := j.Look(ctx, h, q.ID)
	if err == nil && reply.Outcome == Open { // that read may be staler than what is known
		reply, err = replyOf(q.Known.Answer)
	}
	if err != nil {
		return Reply{}, err
	}
	rival := q.Known.Ask
	if rival == nil {
		meta := h.meta()
		meta.Nonce, meta.Fingerprint = NewNonce(), q.Digest // its content tells it again, not its writer
		_, rival, err = j.create(ctx, Record{Key: h.Key.Public(events.RecordAsk, subjects.Token(q.ID)), Meta: meta, Data: q.Event}, h.Claim)
	}
	switch {
	case err != nil:
		return Reply{}, err
	case rival == nil, rival.Err == nil && rival.Meta.Fingerprint == q.Digest:
		return reply, nil
	case rival.Err != nil:
		return Reply{}, corrupt(rival)
	case rival.Meta.Epoch > h.Epoch:
		return Reply{}, ErrLost
	}
	return Reply{}, &events.Error{Code: events.CodeToolError, Op: "ask", Msg: fmt.Sprintf(
		"question %.80q was asked before with other content: the tool does not ask what it asked when it ran first. "+
			"Give each question a name of its own, and let nothing that changes between runs decide what is asked", q.ID)}
}

// Look reads what became of a question of a running turn, from the leader. A run that waits in
// memory looks when the live copy of the question's ack arrives, and every few seconds, because
// live copies get lost.
func (j *Journal) Look(ctx context.Context, h Hold, id string) (Reply, error) {
	replies, err := j.replies(ctx, h, id)
	if err != nil {
		return Reply{}, err
	}
	return replies[0], nil
}

// replies reads whether the turn has ended, or should, and how questions are decided. All of that
// is stored once and stays, so that it does not matter which is read first.
func (j *Journal) replies(ctx context.Context, h Hold, ids ...string) ([]Reply, error) {
	keys := append(make([]string, 0, 2+len(ids)), h.Key.Public(events.RecordResponse), h.Key.Public(events.RecordCancel))
	for _, id := range ids {
		keys = append(keys, h.Key.Private(events.RecordAnswer, subjects.Token(id)))
	}
	found, err := j.lastOf(ctx, keys)
	switch {
	case err != nil:
		return nil, err
	case h.has(found[0]):
		return nil, ErrLost
	}
	switch cancelled, err := j.cancelsHeld(ctx, found[1], found[0], &h); {
	case err != nil:
		return nil, err
	case cancelled:
		return nil, errCancelled
	}
	replies := make([]Reply, len(ids))
	for n, answer := range found[2:] {
		if !h.has(answer) {
			continue
		}
		if replies[n], err = replyOf(answer); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// replyOf reads how a question is decided; answer is nil while it is not.
func replyOf(answer *Record) (Reply, error) {
	switch {
	case answer == nil:
		return Reply{}, nil
	case answer.Err != nil:
		return Reply{}, corrupt(answer)
	case answer.Meta.Secret == Erased: // the turn has ended
		return Reply{}, ErrLost
	}
	switch outcome := Outcome(answer.Meta.Verdict); outcome {
	case Answered, Expired:
		return Reply{Outcome: outcome, Data: answer.Data}, nil
	case Cancelled:
		return Reply{}, errCancelled
	case Open:
	}
	return Reply{}, corrupt(answer)
}

// Take stores that this run is about to hand the answer or expiry of a question to its tool. It
// must be called before that, also by a run that only replays what an earlier one was handed. A
// tool with effect replay is not handed an answer when the code behind it may have run in
// another run and waits for nothing: the error is then interrupted.
func (j *Journal) Take(ctx context.Context, h Hold, id string) error {
	_, rival, err := j.create(ctx, Record{Key: h.Key.Private(events.RecordTaken, subjects.Token(id)), Meta: h.meta()}, h.Claim)
	switch {
	case err != nil || rival == nil:
		return err
	case rival.Err != nil:
		return corrupt(rival)
	case rival.Meta.Epoch > h.Epoch:
		return ErrLost
	case h.Effect != string(events.EffectReplay):
		return nil
	}
	t, err := j.reload(ctx, h)
	if err != nil {
		return err
	}
	if t.passed(rival, h.Nonce) {
		return &events.Error{Code: events.CodeInterrupted, Op: "take", Msg: fmt.Sprintf(
			"an earlier run of the tool was handed the answer of question %.80q: what it did with it may have happened, and is not done again", id)}
	}
	return nil
}

var errCancelled = &events.Error{Code: events.CodeCancelled, Op: "journal", Msg: "somebody cancelled the turn"}

func corrupt(r *Record) error {
	return &events.Error{Code: events.CodeStateCorrupt, Op: "journal", Msg: fmt.Sprintf("record %d cannot be read", r.Seq), Err: r.Err}
}

// lastOf are leader reads that are repeated until they have an answer or ctx ends: the record
// under each key, nil where there is none.
func (j *Journal) lastOf(ctx context.Context, keys []string) (found []*Record, err error) {
	err = j.insist(ctx, func() error {
		found, err = j.store.LastOf(ctx, keys)
		return err
	})
	return found, err
}

// reload reads the turn of a run as it was when the run began or later. It is repeated until it
// has an answer or ctx ends.
func (j *Journal) reload(ctx context.Context, h Hold) (t *Turn, err error) {
	err = j.insist(ctx, func() error {
		t, err = j.readSince(ctx, h.Key, h.Token, nil)
		return err
	})
	return t, err
}

// insist repeats a read: a tool that waits for a person must not be given up for one that has
// no answer.
func (j *Journal) insist(ctx context.Context, read func() error) error {
	for {
		err := read()
		if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrGone) {
			return err
		}
		if errPause := j.pause(ctx, unknownPause); errPause != nil {
			return errors.Join(errPause, err)
		}
	}
}
