// checker.go compares the facts of a run with the invariants of the journal, turn by turn;
// checker_questions.go has the invariants of questions, check_keys.go the one of record keys.

package oneturntest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Violation is a broken invariant.
type Violation struct {
	Invariant string // I1 to I13, see [Check]
	Turn      string // journal key of the turn, "" for the whole run
	Text      string
}

// String returns the violation on one line.
func (v Violation) String() string { return v.Invariant + " " + v.Turn + ": " + v.Text }

// Check returns the violations in the facts of a run that has come to rest: all faults healed, the
// queue drained.
//
//	I1  every accepted turn has exactly one call and one response; no other turn has one; no wake-up
//	    is lost: a turn is parked only while none of its questions is decided
//	I2  a tool marked unsafe is entered at most once; one marked replay is entered again only while it has
//	    a question whose answer no run got, so code between two questions may run again, and code after
//	    the last one runs once; the tool of a rejected turn is never entered, nor any
//	    by an epoch that began after the turn's cancel or response, nor a step by one that began after
//	    its result was stored; every run has the idempotency key of its turn; ok requires an exit
//	I3  a stored record never changes: the copies that subscribers saw are the records
//	I4  the call precedes the response, both have the same call id; only questions of owners that
//	    have lost the turn, and events that close questions, follow
//	I5  no message is left unsettled
//	I6  every takeover has the next epoch, begins after the end of the previous one, and has a later
//	    delivery or another message than its owner, or belongs to the owner that was woken; a fencing
//	    token is the sequence of the record that created its epoch; no tool marked unsafe is parked
//	I7  a turn is interrupted only if its tool was entered and not left, or its worker was hit; a
//	    turn that is not parked changes its owner only if its worker was hit
//	I8  the ids inside a record match its key: no reader sees another tenant's or chat's turn
//	I12 a turn ends in time once the faults are over and its questions decided, see Facts.Within
//	I13 a question has one record and one id; its only decision follows it, matches it, closes it with
//	    the right outcome and is passed to the tool after that, a cancel never; an answer that was
//	    reported as accepted is the stored one
//
// Clocks of the machines of tools and of the server are assumed to agree for questions.
//
// The harness of the repository checks three more that durable facts cannot show: I9 (no secret
// leaks), I10 (no goroutines, descriptors or processes are left) and I11 (a fault slows no other
// turns).
//
// Hit names the turns, by [Accepted.Key], that a fault hit. Nil: faults may have hit any turn; an
// empty map: there was no fault.
func Check(f *Facts, hit map[string]bool) []Violation {
	c := checker{facts: f, hit: hit, turns: map[string]*turnFacts{}}
	c.group()
	for _, key := range slices.Sorted(maps.Keys(c.turns)) {
		c.check(key, c.turns[key])
	}
	c.keys()
	c.copies()
	c.checkAnswers()
	if f.Left > 0 {
		c.failf("I5", "", "%d messages are left in the inbound stream", f.Left)
	}
	return c.found
}

type turnFacts struct {
	accepted *Accepted
	records  []idempotency.Record
	ledger   []LedgerEntry
	enters   int
	exits    int
	epochs   map[int]uint64 // that entered the tool, with their fencing tokens

	questions map[string]*asking             // by token
	parks     map[int]*idempotency.Record    // how epochs ended
	steps     map[string]*idempotency.Record // by token
	runs      map[int]string                 // nonces of epochs
	cancel    *idempotency.Record
}

type checker struct {
	facts *Facts
	hit   map[string]bool
	turns map[string]*turnFacts
	found []Violation
}

func (c *checker) failf(invariant, turn, format string, args ...any) {
	c.found = append(c.found, Violation{invariant, turn, fmt.Sprintf(format, args...)})
}

func (c *checker) turn(key string) *turnFacts {
	t := c.turns[key]
	if t == nil {
		t = &turnFacts{
			epochs: map[int]uint64{}, questions: map[string]*asking{}, parks: map[int]*idempotency.Record{},
			steps: map[string]*idempotency.Record{}, runs: map[int]string{},
		}
		c.turns[key] = t
	}
	return t
}

func (c *checker) group() {
	for i, a := range c.facts.Accepted {
		c.turn(a.Key()).accepted = &c.facts.Accepted[i]
	}
	for _, e := range c.facts.Ledger {
		t := c.turn(subjects.TurnKey(e.App, e.Chat, e.Run, e.Turn).String())
		t.ledger = append(t.ledger, e)
		switch e.Phase {
		case PhaseEnter:
			t.enters++
			t.epochs[e.Epoch] = e.Token
		case PhaseExit:
			t.exits++
		}
	}
	for _, r := range c.facts.Journal {
		k, ok := subjects.ParseKey(r.Key)
		if !ok {
			c.failf("I3", "", "a record under %q, which is not a journal key", r.Key)
			continue
		}
		t := c.turn(k.String())
		t.records = append(t.records, r)
	}
}

func (c *checker) check(key string, t *turnFacts) {
	var call, response *idempotency.Record
	for i := range t.records {
		r := &t.records[i]
		k, _ := subjects.ParseKey(r.Key)
		switch k.Kind {
		case events.KindToolCall:
			call = r
		case events.KindToolResponse:
			response = r
		}
		if single(k.Kind) && k.ID != "" {
			c.failf("I1", key, "a second %s under %s", k.Kind, r.Key)
		}
		if r.Err != nil {
			c.failf("I3", key, "record %s cannot be read: %v", r.Key, r.Err)
		}
		c.checkKey(key, k, r)
		c.note(key, t, k, r)
	}
	c.epochs(key, t, response)
	switch {
	case t.accepted == nil && (call != nil || t.enters > 0):
		c.failf("I1", key, "a turn that was not published was claimed or run")
		return
	case t.accepted == nil:
		return
	case response == nil:
		c.unended(key, t, call)
		return
	case call == nil:
		c.failf("I4", key, "a response without a call")
		return
	case call.Seq >= response.Seq:
		c.failf("I4", key, "the response (%d) is stored before the call (%d)", response.Seq, call.Seq)
	}
	c.inTime(key, t, response)
	c.outcome(key, t, call, response)
	c.asked(key, t, call)
}

// keys compares the idempotency keys that tools got: all runs of a turn have the same, and no two
// turns have the same.
func (c *checker) keys() {
	of, turns := map[string]string{}, map[string]string{} // key by turn, turn by key
	for _, e := range c.facts.Ledger {
		turn := subjects.TurnKey(e.App, e.Chat, e.Run, e.Turn).String()
		if first, seen := of[turn]; seen && first != e.Key {
			c.failf("I2", turn, "entered with idempotency key %q, and with %q", first, e.Key)
		}
		if other, seen := turns[e.Key]; seen && e.Key != "" && other != turn {
			c.failf("I2", turn, "entered with idempotency key %q of turn %s", e.Key, other)
		}
		of[turn], turns[e.Key] = e.Key, turn
	}
}

// single reports whether a turn may have one record of a kind.
func single(kind string) bool {
	return kind == events.KindToolCall || kind == events.KindToolResponse || kind == events.KindCancel
}

// epochs follows a turn from owner to owner.
func (c *checker) epochs(key string, t *turnFacts, response *idempotency.Record) {
	var lease idempotency.Lease // of the owner so far
	epoch, cancelled := 1, false
	for i := range t.records {
		r := &t.records[i]
		k, _ := subjects.ParseKey(r.Key)
		switch k.Kind {
		case events.KindCancel:
			cancelled = true
		case events.KindToolCall:
			lease = r.Meta.Lease
			t.runs[1] = r.Meta.Nonce
			c.token(key, t, epoch, r)
		case "takeover":
			epoch++
			if k.ID != strconv.Itoa(epoch) || r.Meta.Epoch != epoch {
				c.failf("I6", key, "takeover %s of epoch %d follows epoch %d", k.ID, r.Meta.Epoch, epoch-1)
			}
			c.handover(key, t, epoch, r, lease)
			c.token(key, t, epoch, r)
			_, entered := t.epochs[epoch]
			if cancelled && entered {
				c.failf("I2", key, "entered by epoch %d, which began after the cancel", epoch)
			}
			if entered && response != nil && response.Seq < r.Seq {
				c.failf("I2", key, "entered by epoch %d, which began after the response", epoch)
			}
			lease, t.runs[epoch] = r.Meta.Lease, r.Meta.Nonce
		}
	}
}

// handover compares the beginning of an epoch with the end and the lease of the previous one.
func (c *checker) handover(key string, t *turnFacts, epoch int, r *idempotency.Record, lease idempotency.Lease) {
	ended, same := t.parks[epoch-1], r.Meta.Lease.Same(lease)
	how := ""
	if ended != nil && ended.Seq < r.Seq {
		how = ended.Meta.Outcome
	}
	if how == woken && r.Meta.Nonce == t.runs[epoch-1] && r.Meta.Lease == lease {
		return // its owner continues, and may be parked again
	}
	switch {
	case how == "":
		c.failf("I6", key, "taken over as epoch %d before the end of epoch %d", epoch, epoch-1)
	case same && how == parked:
		c.failf("I6", key, "epoch %d was parked, and taken over by its own message", epoch-1)
	case same && r.Meta.Lease.Delivery <= lease.Delivery:
		c.failf("I6", key, "delivery %d of its message took epoch %d from delivery %d", r.Meta.Lease.Delivery, epoch, lease.Delivery)
	}
	if how != parked && c.hit != nil && !c.hit[key] {
		c.failf("I7", key, "taken over as epoch %d without a fault", epoch)
	}
}

// token compares the fencing token that a tool got with the record that created its epoch.
func (c *checker) token(key string, t *turnFacts, epoch int, r *idempotency.Record) {
	if token, ok := t.epochs[epoch]; ok && token != r.Seq {
		c.failf("I6", key, "epoch %d entered the tool with fencing token %d, its record is %d", epoch, token, r.Seq)
	}
}

// outcome compares the response with the ledger.
func (c *checker) outcome(key string, t *turnFacts, call, response *idempotency.Record) {
	var asked events.ToolCall
	var answered events.ToolResponse
	if err := parse(call.Data, &asked); err != nil {
		c.failf("I3", key, "the call cannot be read: %v", err)
		return
	}
	if err := parse(response.Data, &answered); err != nil {
		c.failf("I3", key, "the response cannot be read: %v", err)
		return
	}
	if asked.ToolCallID != answered.ToolCallID {
		c.failf("I4", key, "call %s is answered as %s", asked.ToolCallID, answered.ToolCallID)
	}
	effect := call.Meta.Effect
	switch {
	case asked.Rejected && t.enters > 0:
		c.failf("I2", key, "rejected (%s), but its tool was entered %d times", answered.Code, t.enters)
	case !asked.Rejected && (effect == "unsafe" || effect == "replay" && len(t.questions) == 0) && t.enters > 1:
		c.failf("I2", key, "effect %s, entered %d times", effect, t.enters)
	case answered.Status == events.StatusOK && len(c.facts.Ledger) == 0 && !c.facts.NoLedger:
		c.failf("I2", key, "ok, but the ledger is empty: set Facts.NoLedger if the tools write none, for example Python tools")
	case answered.Status == events.StatusOK && t.exits == 0 && !c.facts.NoLedger:
		c.failf("I2", key, "ok, but its tool never returned (entered %d times)", t.enters)
	case answered.Status != events.StatusOK && !t.accepted.MayFail && answered.Code != events.CodeInterrupted:
		c.failf("I1", key, "ended as %s, want a result", answered.Code)
	}
	interrupted := answered.Code == events.CodeInterrupted && !asked.Rejected
	if interrupted && c.hit != nil && !c.hit[key] && t.enters == t.exits {
		c.failf("I7", key, "interrupted without a fault (entered %d, left %d)", t.enters, t.exits)
	}
	if interrupted && reentered(effect) && c.hit != nil && len(c.hit) == 0 {
		c.failf("I7", key, "a tool of effect %s is interrupted in a run without faults", effect)
	}
}

// inTime compares the end of a turn with the time at which it was accepted, its last question was
// decided, or the last fault was over, whichever is latest.
func (c *checker) inTime(key string, t *turnFacts, response *idempotency.Record) {
	from := t.accepted.At
	if c.facts.Healed.After(from) {
		from = c.facts.Healed
	}
	for _, q := range t.questions {
		if q.answer != nil && q.answer.Time.After(from) {
			from = q.answer.Time
		}
	}
	if c.facts.Within <= 0 || from.IsZero() {
		return
	}
	if took := response.Time.Sub(from); took > c.facts.Within {
		c.failf("I12", key, "ended %s after it was accepted, undisturbed and decided, want %s", took.Round(time.Millisecond), c.facts.Within)
	}
}

func reentered(effect string) bool {
	return effect == "keyed" || effect == "idempotent" || effect == "none"
}

// copies compares the copies that subscribers saw with the journal.
func (c *checker) copies() {
	bySeq := make(map[uint64]*idempotency.Record, len(c.facts.Journal))
	for i := range c.facts.Journal {
		bySeq[c.facts.Journal[i].Seq] = &c.facts.Journal[i]
	}
	seen := map[string]uint64{}
	for _, copied := range c.facts.Copies {
		if first, ok := seen[copied.Key]; ok && first != copied.Seq {
			c.failf("I3", copied.Key, "stored twice, as %d and %d", first, copied.Seq)
		}
		seen[copied.Key] = copied.Seq
		r := bySeq[copied.Seq]
		if r == nil || r.Key != copied.Key || !bytes.Equal(r.Data, copied.Data) {
			c.failf("I3", copied.Key, "subscribers saw sequence %d with other data than the journal has", copied.Seq)
		}
	}
}

func parse(data []byte, event any) error {
	m, err := events.Parse(data)
	if err != nil {
		return err
	}
	return m.As(event)
}
