package idempotency

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A running tool calls these through its host. Each writes or reads records of one question, surface or step. Two runs of a
// turn may overlap, so only these records decide what a run may do. Ask, ReadReply and Take are a question, from being asked to
// its answer being passed to the tool; Show and Dismiss are surfaces; Step and StepResult are named steps.

// ErrLost reports that another run owns the turn, or that it has ended: the run must stop, and neither acknowledge nor nak its
// message.
var ErrLost = errors.New("journal: another run owns the turn, or it has ended")

// Outcome is how a question was decided. The first stored one stands.
type Outcome string

// The outcomes.
const (
	Open      Outcome = "" // not decided yet
	Answered  Outcome = "answered"
	Expired   Outcome = "expired"   // passed to the tool like an answer
	Cancelled Outcome = "cancelled" // the turn was cancelled, or the step that asks has ended; nothing is passed to the tool
)

// Question is what a tool asks a person.
type Question struct {
	// ID is the same in each run that reaches this question: a name or a number. It is unique within the call.
	ID string
	// Digest is a hash of the content: the same id with another digest is another question. It is stored in the header for
	// fingerprints, which every subscriber can read.
	Digest string
	Event  []byte // the chat.tool_call event that displays it
	// Known is the state of the question as this run has read it since it owns the turn, see [Call.Question]: a question
	// that an earlier run has stored is not stored again.
	Known QuestionState
}

// Reply is how a question is decided, so far.
type Reply struct {
	Outcome Outcome
	Data    []byte // of the [Answer]; nil while the question is open
}

// Ask stores a question, unless an earlier run has stored it, and returns the reply so far. The same id with another digest
// is an error: the tool does not ask the same questions as in its first run.
//
// The errors of Ask, [Journal.ReadReply], [Journal.Take] and [Journal.Park] are of two kinds. An
// [events.Error] has the code with which the run has to end the turn: cancelled, interrupted, tool_error, state_corrupt.
// After any other error, also [ErrLost], the run must stop and neither acknowledge nor nak its message: what is stored is
// not known.
func (j *Journal) Ask(ctx context.Context, h Hold, q Question) (Reply, error) {
	reply, err := j.ReadReply(ctx, h, q.ID)
	if err == nil && reply.Outcome == Open { // that read may be older than q.Known
		reply, err = replyOf(q.Known.Answer)
		err = j.closedBy(ctx, h, h.Key.Call, err)
	}
	if err != nil {
		return Reply{}, err
	}
	rival := q.Known.Ask
	if rival == nil {
		meta := h.meta()
		meta.Nonce, meta.Fingerprint = NewNonce(), q.Digest // identified by its content, not by its writer
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
		"question %.80q was asked before with other content: the tool does not ask the same questions as in its first run. "+
			"Give each question a unique name, and do not ask depending on values that change between runs", q.ID)}
}

// ReadReply reads from the leader how a question of a running turn is decided. A run that waits in memory calls it when the
// live copy of the ack arrives, and every few seconds, because live copies get lost.
func (j *Journal) ReadReply(ctx context.Context, h Hold, id string) (Reply, error) {
	replies, err := j.replies(ctx, h, QuestionRef{Call: h.Key.Call, Token: subjects.Token(id)})
	if err != nil {
		return Reply{}, err
	}
	return replies[0], nil
}

// Decided reads from the leader whether one of some questions of a running turn is decided. See [Journal.Ask] for its errors.
func (j *Journal) Decided(ctx context.Context, h Hold, asked ...QuestionRef) (bool, error) {
	replies, err := j.replies(ctx, h, asked...)
	return slices.ContainsFunc(replies, func(r Reply) bool { return r.Outcome != Open }), err
}

// replies reads whether the turn has ended or is cancelled, and how questions are decided. These records never change, so
// the order of the reads does not matter. An open question of a step that has ended, by a run of another owner, gets no answer any more
// (see [Journal.Answer]): a run that waits for it has lost the turn.
func (j *Journal) replies(ctx context.Context, h Hold, asked ...QuestionRef) ([]Reply, error) {
	turn := h.Key.OfTurn()
	keys := append(make([]string, 0, 2+len(asked)), turn.Public(events.RecordResponse), turn.Public(events.RecordCancel))
	for _, q := range asked {
		keys = append(keys, turn.WithCall(q.Call).Private(events.RecordAnswer, q.Token))
	}
	for _, q := range asked {
		if q.Call != subjects.SingleCall {
			keys = append(keys, turn.WithCall(q.Call).Public(events.RecordResponse))
		}
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
	replies := make([]Reply, len(asked))
	ends := found[2+len(asked):]
	for n, q := range asked {
		answer, ended := found[2+n], false
		if q.Call != subjects.SingleCall {
			ended, ends = h.has(ends[0]), ends[1:]
		}
		switch {
		case h.has(answer):
		case ended:
			return nil, ErrLost
		default:
			continue
		}
		if replies[n], err = replyOf(answer); err != nil {
			return nil, j.closedBy(ctx, h, q.Call, err)
		}
	}
	return replies, nil
}

// closedBy returns why a question has no reply, given the error of [replyOf]. When a step has ended, its questions are closed as if
// the turn were cancelled: the run that waits for it, of an earlier owner, has lost the turn, which is not cancelled.
func (j *Journal) closedBy(ctx context.Context, h Hold, call string, err error) error {
	if call == subjects.SingleCall || !errors.Is(err, errCancelled) {
		return err
	}
	cancelled, errRead := j.Cancelled(ctx, h) // after the answer: a cancel is stored before the answers that it causes
	switch {
	case errRead != nil:
		return errRead
	case cancelled:
		return err
	}
	return ErrLost
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
	switch outcome := Outcome(answer.Meta.Outcome); outcome {
	case Answered, Expired:
		return Reply{Outcome: outcome, Data: answer.Data}, nil
	case Cancelled:
		return Reply{}, errCancelled
	case Open:
	}
	return Reply{}, corrupt(answer)
}

// Take stores that this run is about to pass the answer or expiry of a question to its tool. It has to be called before that,
// also by a run that replays an answer which an earlier run has received. For a tool with effect replay the error is
// interrupted if the code after the answer may have run in another run and waits for no question (docs/journal.md#rule-4).
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
	if c := t.CallOf(h.Key); c != nil && t.passed(c, rival, h.Nonce) {
		return &events.Error{Code: events.CodeInterrupted, Op: "take", Msg: fmt.Sprintf(
			"an earlier run of the tool has received the answer to question %.80q: its effect may have happened and is not repeated", id)}
	}
	return nil
}

// corrupt is the error of an unreadable record.
func corrupt(r *Record) error {
	return &events.Error{Code: events.CodeStateCorrupt, Op: "journal", Msg: fmt.Sprintf("record %d cannot be read", r.Seq), Err: r.Err}
}

// AnswerName is the name under which the answer of a question is sealed.
func AnswerName(key subjects.Key, id string) string {
	return key.Private(events.RecordAnswer, subjects.Token(id))
}

// StepName is the name under which the result of a step is sealed.
func StepName(key subjects.Key, id string) string {
	return key.Private(events.RecordStep, subjects.Token(id))
}

// QuestionRecord returns the record of a question by the token of its id, as the leader knows it, or [ErrNotFound]. The
// record never changes, so it need not be read again.
func (j *Journal) QuestionRecord(ctx context.Context, key subjects.Key, token string) (Record, error) {
	question, err := j.currentRecord(ctx, key, key.Public(events.RecordAsk, token))
	switch {
	case err != nil:
		return Record{}, err
	case question == nil:
		return Record{}, ErrNotFound
	}
	return *question, nil
}

// Show stores the event of a surface, something that a tool displays without a question, so that readers of the journal have
// it. If an earlier run has stored one under the id, that stays, without an error. It decides nothing: a run that has lost
// its turn may still show. An error means that the outcome of the write is unknown, or that it can never be stored.
func (j *Journal) Show(ctx context.Context, h Hold, id string, event []byte) error {
	return j.createEvent(ctx, h, events.RecordShow, id, event)
}

// Dismiss stores, likewise, the event that removes a question or a surface from display.
func (j *Journal) Dismiss(ctx context.Context, h Hold, id string, event []byte) error {
	return j.createEvent(ctx, h, events.RecordDismiss, id, event)
}

// createEvent stores a public event that decides nothing.
func (j *Journal) createEvent(ctx context.Context, h Hold, kind, id string, event []byte) error {
	meta := h.meta()
	meta.Nonce = NewNonce()
	_, _, err := j.create(ctx, Record{Key: h.Key.Public(kind, subjects.Token(id)), Meta: meta, Data: event}, h.Claim)
	return err
}

// Step stores the result of a named step that the tool has done, and returns the result that counts: the one of an earlier
// run, if it has stored one in the meantime. The id is unique within the call.
func (j *Journal) Step(ctx context.Context, h Hold, id string, result []byte) ([]byte, error) {
	meta := h.meta()
	meta.Nonce, meta.Secret = NewNonce(), secrecyOf(result)
	_, rival, err := j.create(ctx, Record{Key: h.Key.Private(events.RecordStep, subjects.Token(id)), Meta: meta, Data: result}, h.Claim)
	switch {
	case err != nil:
		return nil, err
	case rival == nil:
		return result, nil
	case rival.Err != nil:
		return nil, corrupt(rival)
	}
	return rival.Data, nil
}

// Step returns the result of a step as it was stored when the turn was read, and whether there is one.
func (c *Call) Step(id string) (result []byte, done bool) {
	if c == nil {
		return nil, false
	}
	key := c.Key.Private(events.RecordStep, subjects.Token(id))
	for _, r := range c.records {
		if r.Key == key && r.Err == nil {
			return r.Data, true
		}
	}
	return nil, false
}

// StepResult reads the stored result of a step from the leader, and reports whether there is one. A run that calls
// [Call.Step] of the turn that it took over first, and then this, never repeats a step whose result was stored before the
// run began.
func (j *Journal) StepResult(ctx context.Context, h Hold, id string) (result []byte, done bool, err error) {
	found, err := j.lastOf(ctx, []string{h.Key.Private(events.RecordStep, subjects.Token(id))})
	if err != nil || !h.has(found[0]) {
		return nil, false, err
	}
	if r := found[0]; r.Err != nil {
		return nil, false, corrupt(r)
	}
	return found[0].Data, true, nil
}
