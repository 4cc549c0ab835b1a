package sim

import (
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// checkOwner: a delivery that a worker no longer owns when a handler begins it stores nothing. How long it lay
// in the buffers of its connection counts.
func (w *world) checkOwner(t *thread, r idempotency.Record) {
	if t != nil && t.stale {
		w.violatef("%s: %s begins #%d/%d a whole ack wait after it was sent, and stores %s", t.m.turn.id.Turn, t.p.name, t.m.seq, t.lease.Delivery, short(r.Key))
	}
}

// checkClaim checks a claim that is about to be stored. No new turn is claimed while the store is
// nearly full, and how old its event is, is measured by the clock of the server, not of the worker.
func (w *world) checkClaim(t *thread, r idempotency.Record) {
	k, ok := subjects.ParseKey(r.Key)
	if !ok || k.Kind != events.KindToolCall || k.Call != subjects.SingleCall || k.Private || k.ID != "" || w.store.keys[r.Key] != 0 || r.Meta.Message != "" || t.m.kind != events.KindStructuredOutputReady {
		return
	}
	if w.full && t.since.After(w.fullSince) {
		w.violatef("%s: %s claims it while the store is nearly full", t.m.turn.id.Turn, t.p.name)
	}
	code, age := events.Code(r.Meta.Outcome), w.now.Sub(t.m.first)
	switch {
	case code == events.CodeTooOld && age < maxEventAge-t.p.unsure,
		code == events.CodeNoBinding && age < bindingGrace-t.p.unsure && !t.noRoom,
		code != events.CodeTooOld && t.since.Sub(t.m.first) > maxEventAge+t.p.unsure:
		w.violatef("%s: %s claims it with code %q after %s", t.m.turn.id.Turn, t.p.name, code, age)
	}
}
