package idempotency

import (
	"cmp"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A Call is the part of a turn that one tool has: its tool_call, its response, its questions. A turn that is one call has
// one; the steps of a program have one each, under separate call tokens. All share the claim, the epochs and the parking
// of the turn.

// Call has what one read of a turn shows of a call. Its methods take nil for a call without records.
type Call struct {
	Key      subjects.Key
	Called   *Record // tool_call of a step; the claim, for the turn's own call
	Response *Record // nil while the call has not ended
	Program  *Record // of a call whose tool is a program: the program that it runs, nil before it is stored
	Result   *Record // the result of that program, if an agent responds to it

	records   []*Record                 // of questions, surfaces and named steps, in the order of their sequences
	questions map[string]*QuestionState // by the token of the id, nil when nothing was asked
	dismissed map[string]*Record
}

// CallOf returns a call of the turn by its key; nil if the turn is nil or the call has no record.
func (t *Turn) CallOf(key subjects.Key) *Call {
	switch {
	case t == nil:
		return nil
	case key.Call == t.Key.Call:
		return &t.Call
	}
	return t.calls[key.Call]
}

// Steps returns the calls of the turn but its own, in the order in which they were called.
func (t *Turn) Steps() []*Call {
	steps := make([]*Call, 0, len(t.calls))
	for _, c := range t.calls {
		steps = append(steps, c)
	}
	slices.SortFunc(steps, func(a, b *Call) int { return cmp.Compare(a.first(), b.first()) })
	return steps
}

// CallEnded reports whether a call of the turn has its response.
func (t *Turn) CallEnded(key subjects.Key) bool {
	c := t.CallOf(key)
	return c != nil && c.Response != nil
}

func (c *Call) first() uint64 {
	switch {
	case c.Called != nil:
		return c.Called.Seq
	case len(c.records) > 0:
		return c.records[0].Seq
	}
	return 0
}

// call returns a call by its token, to add a record to it.
func (t *Turn) call(token string) *Call {
	if token == t.Key.Call {
		return &t.Call
	}
	c := t.calls[token]
	if c == nil {
		if t.calls == nil {
			t.calls = map[string]*Call{}
		}
		c = &Call{Key: t.Key.WithCall(token)}
		t.calls[token] = c
	}
	return c
}

// everyCall calls f for each call of the turn.
func (t *Turn) everyCall(f func(c *Call)) {
	f(&t.Call)
	for _, c := range t.calls {
		f(c)
	}
}

// note adds a record of a kind of which a call may have several.
func (c *Call) note(k subjects.Record, r *Record) {
	switch k.Kind {
	case events.RecordAsk, events.RecordAnswer, events.RecordAck, events.RecordTaken:
		c.question(k.ID).note(k.Kind, r)
	case events.RecordDismiss:
		if c.dismissed == nil {
			c.dismissed = map[string]*Record{}
		}
		c.dismissed[k.ID] = r
	}
	switch k.Kind {
	case events.RecordAsk, events.RecordShow, events.RecordStep:
		c.records = append(c.records, r)
	}
}

// QuestionState has the records of one question of a turn.
type QuestionState struct {
	Call      subjects.Key // the call that has asked it
	Token     string       // of its id, the last token of its records
	Ask       *Record      // nil when only records that follow it were read
	Answer    *Record      // what decided it, private; nil while it is open
	Ack       *Record      // the public event of that; may be missing for a while
	Taken     *Record      // the run that has received the answer
	Dismissed *Record      // it is no longer displayed
}

// Outcome returns how the question was decided. If the decision cannot be read, it is not [Open] and none of the named
// outcomes.
func (q *QuestionState) Outcome() Outcome {
	switch {
	case q.Answer == nil:
		return Open
	case q.Answer.Err != nil:
		return Outcome("unreadable")
	default:
		return Outcome(q.Answer.Meta.Outcome)
	}
}

// Question returns the state of a question, by its id. It reports false when the call has no record of it.
func (c *Call) Question(id string) (QuestionState, bool) {
	if c == nil {
		return QuestionState{}, false
	}
	token := subjects.Token(id)
	q := c.questions[token]
	if q == nil {
		return QuestionState{}, false
	}
	return c.questionState(token, q), true
}

func (c *Call) questionState(token string, q *QuestionState) QuestionState {
	state := *q
	state.Call, state.Token, state.Dismissed = c.Key, token, c.dismissed[token]
	return state
}

// Questions returns the questions that the call has asked, in the order in which they were stored.
func (c *Call) Questions() []QuestionState {
	if c == nil {
		return nil
	}
	var all []QuestionState
	for _, r := range c.records {
		if k, ok := subjects.ParseKey(r.Key); ok && k.Kind == events.RecordAsk && !k.Private {
			all = append(all, c.questionState(k.ID, c.questions[k.ID]))
		}
	}
	return all
}

// Questions returns all questions that calls of the turn have asked, in the order in which they were stored.
func (t *Turn) Questions() []QuestionState {
	all := t.Call.Questions()
	for _, c := range t.calls {
		all = append(all, c.Questions()...)
	}
	if len(t.calls) > 0 {
		slices.SortFunc(all, func(a, b QuestionState) int { return cmp.Compare(a.Ask.Seq, b.Ask.Seq) })
	}
	return all
}

// note adds a record of the question.
func (q *QuestionState) note(kind string, r *Record) {
	switch kind {
	case events.RecordAsk:
		q.Ask = r
	case events.RecordAnswer:
		q.Answer = r
	case events.RecordAck:
		q.Ack = r
	case events.RecordTaken:
		q.Taken = r
	}
}

// question returns the state of a question, by the token of its id, to add a record to it.
func (c *Call) question(id string) *QuestionState {
	q := c.questions[id]
	if q == nil {
		if c.questions == nil {
			c.questions = map[string]*QuestionState{}
		}
		q = &QuestionState{}
		c.questions[id] = q
	}
	return q
}

// Kept has what counts against the bounds of a call: the tokens of the ids of its records, by kind.
type Kept struct {
	Questions, Surfaces, Steps map[string]bool
}

// Kept returns what earlier runs have stored.
func (c *Call) Kept() *Kept {
	k := &Kept{Questions: map[string]bool{}, Surfaces: map[string]bool{}, Steps: map[string]bool{}}
	if c == nil {
		return k
	}
	for _, record := range c.records {
		r, _ := subjects.ParseKey(record.Key)
		switch r.Kind {
		case events.RecordAsk:
			k.Questions[r.ID] = true
		case events.RecordShow:
			k.Surfaces[r.ID] = true
		case events.RecordStep:
			k.Steps[r.ID] = true
		}
	}
	return k
}
