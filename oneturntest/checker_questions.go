// checker_questions.go has the invariants of questions, parking and replay: I13, and parts of I1,
// I2 and I6. note collects the records of a turn, asked checks them against the rules.

package oneturntest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Outcomes of park records: how an epoch ends.
const (
	parked = "parked"
	woken  = "woken"
)

// asking has all records of a question.
type asking struct {
	ask, answer, ack, taken *idempotency.Record
}

func (q *asking) outcome() idempotency.Outcome {
	if q.answer == nil {
		return idempotency.Open
	}
	return idempotency.Outcome(q.answer.Meta.Outcome)
}

// note collects a record of a call, question, step or park. A key is used once: two answers to one
// question are a violation.
func (c *checker) note(f *callFacts, k subjects.Record, r *idempotency.Record) {
	question := func() *asking {
		if f.questions[k.ID] == nil {
			f.questions[k.ID] = &asking{}
		}
		return f.questions[k.ID]
	}
	var into **idempotency.Record
	switch {
	case k.Kind == events.KindToolCall:
		f.call = r
		return
	case k.Kind == events.KindToolResponse:
		f.response = r
		return
	case k.Kind == events.RecordProgram:
		f.program = r
		return
	case k.Kind == events.RecordResult:
		f.result = r
		return
	case k.Kind == events.RecordAsk && !k.Private:
		into = &question().ask
	case k.Kind == events.RecordAck && !k.Private:
		into = &question().ack
	case k.Kind == "answer" && k.Private:
		into = &question().answer
	case k.Kind == "taken" && k.Private:
		into = &question().taken
	case k.Kind == events.KindCancel:
		f.cancel = r
		return
	case k.Kind == "step" && k.Private:
		f.steps[k.ID] = r
		return
	case k.Kind == "park" && k.Private:
		epoch, err := strconv.Atoi(k.ID)
		if err != nil || f.parks[epoch] != nil {
			c.failf("I6", f.key, "a second end of epoch %s: %s", k.ID, r.Key)
			return
		}
		f.parks[epoch] = r
		return
	default:
		return
	}
	if *into != nil {
		c.failf("I13", f.name, "stored twice: %s", r.Key)
	}
	*into = r
}

// unended checks a turn without a response: it may be parked while none of its questions is
// decided.
func (c *checker) unended(t *turnFacts) {
	key := t.key
	park := t.parks[len(t.runs)]
	switch {
	case park == nil || park.Meta.Outcome != parked && park.Meta.Outcome != woken:
		n, _ := t.entered()
		c.failf("I1", key, "accepted, but without a response (claimed: %t, entered: %d)", t.own().call != nil, n)
		return
	case park.Meta.Outcome == woken:
		c.failf("I1", key, "accepted, but without a response: woken, but not resumed")
		return
	}
	open, err := openAt(park)
	if err != nil {
		c.failf("I3", key, "the park record cannot be read: %v", err)
	}
	for _, id := range open {
		if q := t.question(id); q != nil && q.answer != nil {
			c.failf("I1", key, "parked, though question %s is %s: the wake-up is lost", id, q.outcome())
			return
		}
	}
	switch {
	case t.cancel != nil:
		c.failf("I1", key, "parked, though it is cancelled: the wake-up is lost")
	case !t.accepted.MayWait:
		c.failf("I1", key, "accepted, but without a response: parked, waiting for %v", open)
	}
}

// openAt returns the questions that a park record names: <call>.<question> in tokens, for the turn's own call the question alone.
func openAt(park *idempotency.Record) ([]string, error) {
	var state struct {
		Open []string `json:"open"`
	}
	if err := json.Unmarshal(park.Data, &state); err != nil {
		return nil, fmt.Errorf("read %s: %w", park.Key, err)
	}
	return state.Open, nil
}

// questionAt splits the name of a question in a park record.
func questionAt(name string) (call, question string) {
	if call, question, ok := strings.Cut(name, "."); ok {
		return call, question
	}
	return subjects.SingleCall, name
}

// question returns a question by its name in a park record, nil if it has no record.
func (t *turnFacts) question(name string) *asking {
	call, question := questionAt(name)
	if f := t.calls[call]; f != nil {
		return f.questions[question]
	}
	return nil
}

// asked checks the questions and the named steps of a call.
func (c *checker) asked(f *callFacts) {
	for _, p := range f.parks {
		if f.effect() == "unsafe" && f.token == subjects.SingleCall && p.Meta.Outcome == parked {
			c.failf("I6", f.name, "epoch %d is parked, though its tool is unsafe", p.Meta.Epoch)
		}
	}
	for token, q := range f.questions {
		if q.ask == nil {
			c.failf("I13", f.name, "question %s has records, but was never asked", token)
			continue
		}
		c.identity(f, token, q)
		c.decided(f, token, q)
	}
	if f.effect() == "replay" {
		c.replays(f)
	}
	for _, e := range f.ledger {
		switch q, s := f.questions[subjects.Token(e.Name)], f.steps[subjects.Token(e.Name)]; {
		case e.Phase == PhaseAnswered && (q == nil || q.taken == nil):
			c.failf("I13", f.name, "epoch %d got the answer to %s, but no record shows it", e.Epoch, e.Name)
		case e.Phase == PhaseStep && s != nil && s.Seq < e.Token:
			c.failf("I2", f.name, "step %s was entered by epoch %d, which began after its result was stored", e.Name, e.Epoch)
		}
	}
}

// identity compares the ids of a question with its key and with the ledger of its tool: the same
// question under two ids would be displayed twice.
func (c *checker) identity(f *callFacts, token string, q *asking) {
	key := f.name
	var asked events.ToolCall
	asker, readable := f.id()
	if parse(q.ask.Data, &asked) != nil || !readable {
		c.failf("I3", key, "question %s cannot be read", token)
		return
	}
	callID, id, ok := events.ParseQuestionID(asked.ToolCallID)
	if !ok || callID != asker || subjects.Token(id) != token {
		c.failf("I13", key, "question %s has id %q", token, asked.ToolCallID)
	}
	noted := func(e LedgerEntry) bool { return e.Phase == PhaseAsk }
	this := func(e LedgerEntry) bool { return noted(e) && subjects.Token(e.Name) == token }
	if slices.ContainsFunc(f.ledger, noted) && !slices.ContainsFunc(f.ledger, this) {
		c.failf("I13", key, "question %s is displayed, but its tool has not asked it", token)
	}
	if q.ack == nil {
		return
	}
	var ack events.ToolCallAck
	status := map[idempotency.Outcome]string{
		idempotency.Answered: events.AckAccepted, idempotency.Expired: events.AckExpired, idempotency.Cancelled: events.AckCancelled,
	}
	if err := parse(q.ack.Data, &ack); err != nil || ack.ToolCallID != asked.ToolCallID || ack.Status != status[q.outcome()] {
		c.failf("I13", key, "question %s is %s and closed as %q of %q", token, q.outcome(), ack.Status, ack.ToolCallID)
	}
	c.checkSchema(key, token, q, &asked)
}

// checkSchema validates an answer against the schema of its question.
func (c *checker) checkSchema(key, token string, q *asking, asked *events.ToolCall) {
	if q.outcome() != idempotency.Answered || q.answer.Meta.Secret != "" || asked.Answer == nil || asked.Answer.Schema == nil {
		return
	}
	text, err := events.AppendJSON(nil, asked.Answer.Schema)
	if err != nil {
		c.failf("I13", key, "the schema of question %s cannot be read: %v", token, err)
		return
	}
	schema, err := model.CompileValue("answer", text)
	if err != nil {
		c.failf("I13", key, "the schema of question %s cannot be read: %v", token, err)
		return
	}
	value, err := events.Decode(q.answer.Data)
	if err != nil {
		c.failf("I13", key, "the answer to question %s cannot be read: %v", token, err)
		return
	}
	if _, _, violations := schema.Conform(value); len(violations) > 0 {
		c.failf("I13", key, "the answer to question %s does not match: %v", token, violations)
	}
}

// decided checks the order of the records of a question.
func (c *checker) decided(f *callFacts, token string, q *asking) {
	key := f.name
	if q.answer == nil {
		if q.taken != nil || q.ack != nil {
			c.failf("I13", key, "question %s is taken or closed, but not decided", token)
		}
		return
	}
	erased := q.answer.Meta.Secret == idempotency.Erased // stored again, without its data
	switch {
	case q.answer.Seq < q.ask.Seq:
		c.failf("I13", key, "question %s was decided before it was asked", token)
	case q.ack == nil && f.cancel == nil: // the end of a cancelled turn closes its questions as well
		c.failf("I13", key, "question %s is %s and was not closed", token, q.outcome())
	case q.ack != nil && (q.ack.Seq < q.answer.Seq && !erased || q.ack.Meta.Outcome != q.answer.Meta.Outcome):
		c.failf("I13", key, "the close event of question %s does not match its answer", token)
	case q.taken != nil && q.taken.Seq < q.answer.Seq && !erased:
		c.failf("I13", key, "the answer to question %s was passed on before it was stored", token)
	}
	if q.outcome() == idempotency.Cancelled && (f.cancel == nil && !f.endedBefore(q.answer) || q.taken != nil) {
		c.failf("I13", key, "question %s was cancelled without a cancel of the turn or the end of its step, or passed to the tool", token)
	}
}

// replays checks that no code of a replay tool runs twice that must not.
func (c *checker) replays(f *callFacts) {
	key := f.name
	entered, left := map[int]int{}, map[string]bool{}
	for _, e := range f.ledger {
		switch run := f.runs[e.Epoch]; e.Phase {
		case PhaseEnter:
			if e.Attempt > 1 {
				continue
			}
			if entered[e.Epoch]++; entered[e.Epoch] > 1 {
				c.failf("I2", key, "effect replay, entered %d times by epoch %d", entered[e.Epoch], e.Epoch)
			}
			if e.Epoch > f.call.Meta.Epoch && !f.comesToQuestion(e.Token) {
				c.failf("I2", key, "effect replay, entered again by epoch %d, which had no question to reach", e.Epoch)
			}
		case PhaseAnswered:
			if q := f.questions[subjects.Token(e.Name)]; q != nil && q.taken != nil && run != q.taken.Meta.Nonce && !f.onTheWay(q.taken, time.Unix(0, e.UnixNS)) {
				c.failf("I2", key, "the code after the answer to %s ran in epoch %d and in another", e.Name, e.Epoch)
			}
		case PhaseExit:
			if left[run] = true; len(left) > 1 {
				c.failf("I2", key, "effect replay, and %d of its runs have come to their end", len(left))
			}
		}
	}
}

// comesToQuestion reports whether a run that began with the record of a sequence could come to a
// question whose answer no earlier run got.
func (f *callFacts) comesToQuestion(began uint64) bool {
	for _, q := range f.questions {
		if q.ask != nil && (q.taken == nil || q.taken.Seq > began) {
			return true
		}
	}
	return false
}

// onTheWay reports whether the code after an answer that another run had taken could run again at
// a time: as the way to a later question, or to one for which that run was parked.
func (f *callFacts) onTheWay(taken *idempotency.Record, at time.Time) bool {
	for _, p := range f.parks {
		if p.Meta.Outcome == parked && p.Meta.Nonce == taken.Meta.Nonce && p.Seq > taken.Seq && !p.Time.After(at) {
			return true
		}
	}
	for _, q := range f.questions {
		if q.ask != nil && q.ask.Seq > taken.Seq && !q.ask.Time.After(at) {
			return true
		}
	}
	return false
}

// checkAnswers compares the results that people got with the stored answers.
func (c *checker) checkAnswers() {
	for i := range c.facts.Answers {
		s := &c.facts.Answers[i]
		callID, ask, ok := events.ParseQuestionID(s.Question.ToolCallID)
		if s.Err != nil || s.Act.Cancel || !ok {
			continue
		}
		asker := c.call(callKey(events.TurnID{App: s.Question.App, Chat: s.Question.Chat, Run: s.Question.Run, Turn: s.Question.Turn}, callID))
		key, q := asker.name, asker.questions[subjects.Token(ask)]
		stands := q != nil && q.outcome() == idempotency.Answered
		known := stands && s.Act.Value != nil && q.answer.Meta.Secret == "" // else its sender is unknown
		same := known && sameJSON(s.Act.Value, q.answer.Data)
		switch s.Result.Code {
		case events.AnswerAccepted, events.AnswerReplayed:
			if !stands || known && !same {
				c.failf("I13", key, "an answer to question %s was reported as %s, but it is not the stored one", ask, s.Result.Code)
			}
		case events.AnswerConflict, events.AnswerExpired, events.AnswerCancelled, events.AnswerInvalid:
			if same {
				c.failf("I13", key, "an answer to question %s was reported as %s, but it is the stored one", ask, s.Result.Code)
			}
		case events.AnswerForbidden, events.AnswerUnknown, events.AnswerClosed, events.AnswerBusy: // with any stored answer
		}
	}
}

func sameJSON(answer any, stored []byte) bool {
	data, err := json.Marshal(answer)
	x, errX := events.Decode(data)
	y, errY := events.Decode(stored)
	return errors.Join(err, errX, errY) == nil && reflect.DeepEqual(x, y)
}
