// checker_reused_keys.go finds the turns of reused keys (on_key_reuse: run): a record of the plain key names the data that runs under a
// key which its fingerprint completes. The ledger and the accepted turns have the turn key only.

package oneturntest

import (
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// reuseNotes are the records of a turn key that send other data to a reused key.
type reuseNotes []*idempotency.Record

// groupReuseNotes finds the records that send data to reused keys.
func (c *checker) groupReuseNotes() {
	for i := range c.facts.Journal {
		r := &c.facts.Journal[i]
		if k, ok := subjects.ParseKey(r.Key); ok && k.Private && k.Kind == events.RecordReused && r.Meta.Outcome != idempotency.OutcomePlainKey {
			c.reused[k.OfTurn()] = append(c.reused[k.OfTurn()], r)
		}
	}
}

// reusedKeys returns the keys under which other data of a turn key runs.
func (c *checker) reusedKeys(plain subjects.Key, run, turn string) []subjects.Key {
	keys := make([]subjects.Key, 0, len(c.reused[plain]))
	for _, note := range c.reused[plain] {
		k, _ := subjects.ParseKey(note.Key)
		keys = append(keys, plain.Reuse(run, turn, k.ID))
	}
	return keys
}

// acceptTurns notes the accepted turns. Which of several with one key a reused key belongs to is not known: what one of them may do, all may.
func (c *checker) acceptTurns() {
	for i := range c.facts.Accepted {
		a := &c.facts.Accepted[i]
		plain := subjects.TurnKey(a.App, a.Chat, a.Run, a.Turn)
		reused := c.reusedKeys(plain, a.Run, a.Turn)
		if len(reused) == 0 {
			c.turn(plain).accepted = a
			continue
		}
		all := *a
		if before := c.turn(plain).accepted; before != nil {
			all.MayFail, all.MayWait = all.MayFail || before.MayFail, all.MayWait || before.MayWait
			if all.At.Before(before.At) {
				all.Begun, all.At = before.Begun, before.At
			}
		}
		for _, key := range append(reused, plain) {
			c.turn(key).accepted = &all
		}
	}
}

// key returns the key of the call of a line of the ledger.
func (c *checker) key(e *LedgerEntry) subjects.Key {
	plain := subjects.TurnKey(e.App, e.Chat, e.Run, e.Turn)
	for _, key := range c.reusedKeys(plain, e.Run, e.Turn) {
		call := events.QualifiedCallID(e.Turn, key.Turn)
		if e.Call == call {
			return key
		}
		if step, ok := strings.CutPrefix(e.Call, events.StepID(call, "")); ok {
			return key.WithCall(subjects.CallOf(step))
		}
	}
	return callKey(events.TurnID{App: e.App, Chat: e.Chat, Run: e.Run, Turn: e.Turn}, e.Call)
}

// claim returns the claim of a turn, nil if it has none.
func (t *turnFacts) claim() *idempotency.Record {
	for i := range t.records {
		if k, _ := subjects.ParseKey(t.records[i].Key); k.Kind == events.RecordCall && !k.Private && k.Call == subjects.SingleCall && k.ID == "" {
			return &t.records[i]
		}
	}
	return nil
}

// checkReusedKeys: data that runs under a reused key is claimed after that was chosen, and not under the plain key as well.
func (c *checker) checkReusedKeys(t *turnFacts) {
	claim := t.own().call
	a := t.accepted
	if a == nil || claim == nil || a.Key() == t.key {
		return
	}
	if first := c.turns[a.Key()].claim(); first != nil && first.Meta.Fingerprint == claim.Meta.Fingerprint {
		c.failf("I2", t.key, "its data is claimed under the plain key %s as well", a.Key())
	}
	for _, note := range c.reused[subjects.TurnKey(a.App, a.Chat, a.Run, a.Turn)] {
		if note.Meta.Fingerprint == claim.Meta.Fingerprint && note.Seq > claim.Seq {
			c.failf("I4", t.key, "claimed before its key was chosen")
		}
	}
}
