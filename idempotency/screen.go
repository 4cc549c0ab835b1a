package idempotency

import (
	"context"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Show stores the event of something that a tool puts on the screen and that nobody answers, so
// that a reader of the journal sees it. What an earlier run has shown under the id stays, and is
// no error. It decides nothing: a run that has lost its turn may still show. The error is that
// of a write whose outcome is unknown, or that can never be stored.
func (j *Journal) Show(ctx context.Context, h Hold, id string, event []byte) error {
	return j.screen(ctx, h, events.RecordShow, id, event)
}

// Dismiss stores the event that takes a question or something shown from the screen, likewise.
func (j *Journal) Dismiss(ctx context.Context, h Hold, id string, event []byte) error {
	return j.screen(ctx, h, events.RecordDismiss, id, event)
}

func (j *Journal) screen(ctx context.Context, h Hold, kind, id string, event []byte) error {
	meta := h.meta()
	meta.Nonce = NewNonce()
	_, _, err := j.create(ctx, Record{Key: h.Key.Public(kind, subjects.Token(id)), Meta: meta, Data: event}, h.Claim)
	return err
}

// Inquiry is what the journal holds of one question of a turn.
type Inquiry struct {
	Token     string  // of its id, the last token of its records
	Ask       *Record // nil when only something that followed from it was seen
	Answer    *Record // what decided it, private; nil while it is open
	Ack       *Record // the event that says so; may be missing for a while
	Taken     *Record // the run that was handed the answer
	Dismissed *Record // it was taken from the screen
}

// Outcome returns how the question was decided. One whose decision cannot be read is not
// [Open] and has no outcome of those that are named.
func (q *Inquiry) Outcome() Outcome {
	switch {
	case q.Answer == nil:
		return Open
	case q.Answer.Err != nil:
		return Outcome("unreadable")
	default:
		return Outcome(q.Answer.Meta.Verdict)
	}
}

// Question returns what is known of a question, by its id. It reports false when nothing is.
func (t *Turn) Question(id string) (Inquiry, bool) {
	token := subjects.Token(id)
	q := t.questions[token]
	if q == nil {
		return Inquiry{}, false
	}
	return t.inquiry(token, q), true
}

func (t *Turn) inquiry(token string, q *asked) Inquiry {
	return Inquiry{Token: token, Ask: q.ask, Answer: q.answer, Ack: q.ack, Taken: q.taken, Dismissed: t.dismissed[token]}
}

// Questions returns all questions that the turn has asked, in the order in which they were
// stored.
func (t *Turn) Questions() []Inquiry {
	var all []Inquiry
	for n := range t.Records {
		r := &t.Records[n]
		if k, ok := subjects.ParseKey(r.Key); ok && k.Kind == events.RecordAsk && !k.Private {
			all = append(all, t.inquiry(k.ID, t.questions[k.ID]))
		}
	}
	return all
}

// OpenQuestions returns those that somebody can still answer: asked, readable, undecided, in a
// turn that has not ended.
func (t *Turn) OpenQuestions() []Inquiry {
	if t.Response != nil {
		return nil
	}
	var open []Inquiry
	for _, q := range t.Questions() {
		if q.Outcome() == Open && q.Ask.Err == nil {
			open = append(open, q)
		}
	}
	return open
}
