package oneturntest

import (
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// checkKey compares the ids inside a public record with its key: rights to read are rights to
// subjects, so a record under the wrong key could be read by the wrong people.
func (c *checker) checkKey(f *callFacts, key subjects.Record, r *idempotency.Record) {
	turn := f.name
	if key.Private {
		return // only workers read it
	}
	m, err := events.Parse(r.Data)
	if err != nil {
		return // reported as I3
	}
	id := func(name string) string {
		s, _ := m.Data[name].(string)
		return s
	}
	if m.Kind != eventKind(key.Kind) {
		c.failf("I8", turn, "record %s has an event of kind %q", r.Key, m.Kind)
	}
	want := subjects.TurnKey(id("app_id"), id("chat_id"), id("run_id"), id("turn"))
	if key.App != want.App || key.Chat != want.Chat {
		c.failf("I8", turn, "record %s belongs to tenant %q, chat %q", r.Key, id("app_id"), id("chat_id"))
		return
	}
	if key.Kind == events.RecordContextUpdate {
		c.checkUpdateKey(f, key, id("id"), id("variable"))
		return
	}
	const hash = 16 // of the fingerprint, in the key of a turn whose turn key was used before
	fingerprint := r.Meta.Fingerprint
	if key.Turn != want.Turn && (len(fingerprint) < hash || key.Turn != subjects.ReusedTurnToken(id("run_id"), id("turn"), fingerprint[:hash])) {
		c.failf("I8", turn, "record %s belongs to turn %q, run %q", r.Key, id("turn"), id("run_id"))
		return
	}
	if key.Call == subjects.SingleCall {
		return // its id is compared with the claim's
	}
	call := id("tool_call_id")
	if asker, _, ok := events.ParseQuestionID(call); ok && isOfQuestion(key.Kind) {
		call = asker
	}
	turnCall := events.CallID(events.TurnID{App: id("app_id"), Chat: id("chat_id"), Run: id("run_id"), Turn: id("turn")}, key.Turn)
	if key.Turn != want.Turn {
		turnCall = events.QualifiedCallID(id("turn"), key.Turn)
	}
	if step, ok := strings.CutPrefix(call, events.StepID(turnCall, "")); !ok || subjects.CallOf(step) != key.Call {
		c.failf("I8", turn, "record %s belongs to call %q", r.Key, call)
	}
}

// checkUpdateKey compares the event of a variable that an answer has set with its key. It names the question, and no turn.
func (c *checker) checkUpdateKey(f *callFacts, key subjects.Record, question, variable string) {
	_, ask, _ := events.ParseQuestionID(question)
	var asked events.ToolCall
	q := f.questions[subjects.Token(ask)]
	if q == nil || q.ask == nil || parse(q.ask.Data, &asked) != nil || asked.ToolCallID != question || key.ID != subjects.Token(ask+"/"+variable) {
		c.failf("I8", f.name, "record %s reports variable %q, set by the answer to %q, which the call has not asked", key.Name(), variable, question)
	}
}

// isOfQuestion reports whether the event of a record kind has the id of a question or surface.
func isOfQuestion(kind string) bool {
	return kind == events.RecordAsk || kind == events.RecordShow || kind == events.RecordAck || kind == events.RecordDismiss
}

// eventKind returns the kind of the event that is stored under a record kind.
func eventKind(kind string) string {
	switch kind {
	case events.KindCancel:
		return events.KindToolCallCancel
	case events.RecordAsk, events.RecordShow:
		return events.KindToolCall
	case events.RecordAck:
		return events.KindToolCallAck
	case events.RecordDismiss:
		return events.KindToolCallDismiss
	case events.RecordProgram:
		return events.KindPlanStarted
	case events.RecordResult:
		return events.KindPlanFinished
	}
	return kind
}

// keys compares the idempotency keys that tools got: all runs of a call have the same, and no two
// calls have the same.
func (c *checker) keys() {
	of, calls := map[string]string{}, map[string]string{} // key by call, call by key
	for i := range c.facts.Ledger {
		e := &c.facts.Ledger[i]
		call := c.key(e).String()
		if first, seen := of[call]; seen && first != e.Key {
			c.failf("I2", call, "entered with idempotency key %q, and with %q", first, e.Key)
		}
		if other, seen := calls[e.Key]; seen && e.Key != "" && other != call {
			c.failf("I2", call, "entered with idempotency key %q of %s", e.Key, other)
		}
		of[call], calls[e.Key] = e.Key, call
	}
}
