package oneturntest

import (
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// belongs holds the ids inside a public record against the key that it is stored under: rights
// to read are rights to subjects, so a record in the wrong place is read by the wrong people.
func (c *checker) belongs(turn string, key subjects.Record, r *idempotency.Record) {
	if key.Private {
		return // nobody but workers reads it
	}
	m, err := events.Parse(r.Data)
	if err != nil {
		return // told as I3
	}
	id := func(name string) string {
		s, _ := m.Data[name].(string)
		return s
	}
	if m.Kind != kindUnder(key.Kind) {
		c.failf("I8", turn, "record %s holds an event of kind %q", r.Key, m.Kind)
	}
	want := subjects.TurnKey(id("app_id"), id("chat_id"), id("run_id"), id("turn"))
	if key.App != want.App || key.Chat != want.Chat {
		c.failf("I8", turn, "record %s is of tenant %q, chat %q", r.Key, id("app_id"), id("chat_id"))
		return
	}
	const hash = 16 // of the fingerprint, in the key of a turn whose turn key was used before
	fingerprint := r.Meta.Fingerprint
	if key.Turn != want.Turn && (len(fingerprint) < hash || key.Turn != subjects.ReusedTurnToken(id("run_id"), id("turn"), fingerprint[:hash])) {
		c.failf("I8", turn, "record %s is of turn %q, run %q", r.Key, id("turn"), id("run_id"))
	}
}

// kindUnder is the kind of the event that is stored under a key of a kind.
func kindUnder(kind string) string {
	switch kind {
	case events.KindCancel:
		return events.KindToolCallCancel
	case events.RecordAsk, events.RecordShow:
		return events.KindToolCall
	case events.RecordAck:
		return events.KindToolCallAck
	case events.RecordDismiss:
		return events.KindToolCallDismiss
	}
	return kind
}
