// checker.go compares the facts of a run with the invariants of the journal, turn by turn and, in a program, step by
// step. checker_*.go have the invariants of owners, programs, retries, questions, messages and record keys.

package oneturntest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Violation is a broken invariant.
type Violation struct {
	Invariant string // I1 to I14, see [Check]
	Turn      string // journal key of the turn or message or, of a program, of the step; "" for the whole run
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
//	I14 each accepted message of an agent or a user has one text, or a dead letter if its id has other content
//	    already; each variable that it sets is reported once, in the order of its text, as the document of the
//	    chat has decided; a turn is claimed for it only if its text names one, with the object of the text; its
//	    handoff is stored if it is due, once, as the document has decided, and after the response of its turn
//
// Of a turn whose tool is a program, each step is judged as a call with its own effect, and in addition:
//
//	I1  each step that was called has exactly one response, and it precedes the response of the turn; only
//	    an owner that has lost the turn may call a step or end one after that
//	I2  a tool is entered only after the call of its step was stored, never after the step has ended, and a
//	    tool marked unsafe only by the epoch that called it; a step that was parked is entered again only if
//	    one of its questions was decided; no step is called by an epoch that began after the cancel, and none
//	    whose end a retry has copied; a retry calls no step that has succeeded in the turn that it retries, and one
//	    whose effect may have happened there only if it names the step
//	I4  the stored program precedes its steps, and has each of them; a step is called only when those before it
//	    are over and none of them halted the program; the result precedes the agent that responds to it
//	I6  the turn is not parked while a step marked unsafe runs
//	I13 a question is cancelled without a cancel of the turn only after its step has ended
//
// Other data under a used turn key is a separate turn if its workflow has on_key_reuse: run, and is judged as one. The data of a
// turn runs under one key only (I2), which is chosen before the claim (I4).
//
// Clocks of the machines of tools and of the server are assumed to agree for questions and steps.
//
// The harness of the repository checks three more that durable facts cannot show: I9 (no secret
// leaks), I10 (no goroutines, descriptors or processes are left) and I11 (a fault slows no other
// turns).
//
// Hit names the turns, by [Accepted.Key], that a fault hit. Nil: faults may have hit any turn; an
// empty map: there was no fault.
func Check(f *Facts, hit map[string]bool) []Violation {
	c := newChecker(f, hit)
	c.group()
	for _, key := range slices.Sorted(maps.Keys(c.turns)) {
		c.check(c.turns[key])
	}
	c.retries()
	c.checkMessages()
	c.keys()
	c.copies()
	c.checkAnswers()
	if f.Left > 0 {
		c.failf("I5", "", "%d messages are left in the inbound stream", f.Left)
	}
	return c.found
}

// turnFacts has what is known of a turn: what its calls share, and each call by itself.
type turnFacts struct {
	key      string // journal key of the turn
	accepted *Accepted
	records  []idempotency.Record
	calls    map[string]*callFacts // by call token: the turn's own call and, of a program, one for each step

	began  map[int]uint64              // sequences of the records that began epochs: their fencing tokens
	runs   map[int]string              // nonces of epochs
	parks  map[int]*idempotency.Record // how epochs ended
	cancel *idempotency.Record
}

// callFacts has what is known of a call.
type callFacts struct {
	*turnFacts

	name     string // journal key of the call
	token    string
	call     *idempotency.Record
	response *idempotency.Record
	program  *idempotency.Record // that the call runs, if its tool runs programs
	result   *idempotency.Record // of that program, if an agent responds to it
	ledger   []LedgerEntry
	enters   int
	exits    int

	questions map[string]*asking             // by token
	steps     map[string]*idempotency.Record // named steps of the tool, by token
}

// effect returns the effect of the tool, as the call has it; "" without a call.
func (f *callFacts) effect() string {
	if f.call == nil {
		return ""
	}
	return f.call.Meta.Effect
}

// own returns the turn's own call.
func (t *turnFacts) own() *callFacts { return t.calls[subjects.SingleCall] }

// entered returns how often tools of the turn were entered, and whether one was entered and not left.
func (t *turnFacts) entered() (n int, inside bool) {
	for _, f := range t.calls {
		n += f.enters
		inside = inside || f.enters > f.exits
	}
	return n, inside
}

type checker struct {
	facts    *Facts
	hit      map[string]bool
	turns    map[string]*turnFacts
	messages map[subjects.Key]*messageFacts
	reused   map[subjects.Key]reuseNotes // by the key of the turn, see [checker.groupReuseNotes]
	found    []Violation
}

func newChecker(f *Facts, hit map[string]bool) *checker {
	return &checker{facts: f, hit: hit, turns: map[string]*turnFacts{}, messages: map[subjects.Key]*messageFacts{}, reused: map[subjects.Key]reuseNotes{}}
}

func (c *checker) failf(invariant, turn, format string, args ...any) {
	c.found = append(c.found, Violation{invariant, turn, fmt.Sprintf(format, args...)})
}

// turn returns the facts of the turn that a key belongs to.
func (c *checker) turn(key subjects.Key) *turnFacts {
	name := key.OfTurn().String()
	t := c.turns[name]
	if t == nil {
		t = &turnFacts{
			key: name, calls: map[string]*callFacts{}, began: map[int]uint64{}, parks: map[int]*idempotency.Record{}, runs: map[int]string{},
		}
		c.turns[name] = t
		c.call(key.OfTurn())
	}
	return t
}

// call returns the facts of a call.
func (c *checker) call(key subjects.Key) *callFacts {
	t := c.turn(key)
	f := t.calls[key.Call]
	if f == nil {
		f = &callFacts{turnFacts: t, name: key.String(), token: key.Call, questions: map[string]*asking{}, steps: map[string]*idempotency.Record{}}
		t.calls[key.Call] = f
	}
	return f
}

func (c *checker) group() {
	c.groupMessages()
	c.groupReuseNotes()
	c.acceptTurns()
	for i := range c.facts.Ledger {
		e := &c.facts.Ledger[i]
		f := c.call(c.key(e))
		f.ledger = append(f.ledger, *e)
		switch e.Phase {
		case PhaseEnter:
			if e.Attempt <= 1 {
				f.enters++
			}
		case PhaseExit:
			f.exits++
		}
	}
	for _, r := range c.facts.Journal {
		k, ok := subjects.ParseKey(r.Key)
		if !ok {
			c.failf("I3", "", "a record under %q, which is not a journal key", r.Key)
			continue
		}
		if m := c.messages[k.OfTurn()]; m != nil {
			m.records = append(m.records, r)
			continue
		}
		t := c.turn(k.Key)
		t.records = append(t.records, r)
	}
	c.groupTurns()
}

func (c *checker) check(t *turnFacts) {
	for i := range t.records {
		r := &t.records[i]
		k, _ := subjects.ParseKey(r.Key)
		if k.Kind == events.RecordReused && r.Err == nil { // of the key, not of a call
			continue
		}
		f := c.call(k.Key)
		if single(k.Kind) && k.ID != "" {
			c.failf("I1", f.name, "a second %s under %s", k.Kind, r.Key)
		}
		if r.Err != nil {
			c.failf("I3", f.name, "record %s cannot be read: %v", r.Key, r.Err)
		}
		c.checkKey(f, k, r)
		c.note(f, k, r)
	}
	own, key := t.own(), t.key
	c.epochs(t)
	n, _ := t.entered()
	if t.accepted == nil {
		if own.call != nil || n > 0 {
			c.failf("I1", key, "a turn that was not published was claimed or run")
		}
		return
	}
	c.checkReusedKeys(t)
	c.program(t)
	switch {
	case own.response == nil:
		c.unended(t)
		return
	case own.call == nil:
		c.failf("I4", key, "a response without a call")
		return
	}
	c.inTime(t)
	c.outcome(own)
	c.asked(own)
}

// single reports whether a call may have one record of a kind.
func single(kind string) bool {
	return kind == events.KindToolCall || kind == events.KindToolResponse || kind == events.KindCancel || kind == events.RecordProgram
}

// undisturbed reports whether no fault has hit a turn.
func (c *checker) undisturbed(t *turnFacts) bool {
	return c.hit != nil && !c.hit[t.key] && (t.accepted == nil || !c.hit[t.accepted.Key()])
}

// outcome compares the response of a call with the call and the ledger.
func (c *checker) outcome(f *callFacts) {
	key, own := f.name, f.token == subjects.SingleCall
	var asked events.ToolCall
	var answered events.ToolResponse
	if err := parse(f.call.Data, &asked); err != nil {
		c.failf("I3", key, "the call cannot be read: %v", err)
		return
	}
	if err := parse(f.response.Data, &answered); err != nil {
		c.failf("I3", key, "the response cannot be read: %v", err)
		return
	}
	if f.call.Seq >= f.response.Seq {
		c.failf("I4", key, "the response (%d) is stored before the call (%d)", f.response.Seq, f.call.Seq)
	}
	if asked.ToolCallID != answered.ToolCallID {
		c.failf("I4", key, "call %s is answered as %s", asked.ToolCallID, answered.ToolCallID)
	}
	if answered.EffectState == events.EffectHappened && !c.facts.NoLedger && f.ledgered() && f.exits == 0 {
		c.failf("I2", key, "by its response the tool has returned, but it never did (entered %d times)", f.enters)
	}
	effect := f.effect()
	ran := answered.Status == events.StatusOK && !c.facts.NoLedger && f.ledgered()
	switch {
	case asked.Rejected && f.enters > 0:
		c.failf("I2", key, "rejected (%s), but its tool was entered %d times", answered.Code, f.enters)
	case ran && len(c.facts.Ledger) == 0:
		c.failf("I2", key, "ok, but the ledger is empty: set Facts.NoLedger if the tools write none, for example Python tools")
	case ran && f.exits == 0:
		c.failf("I2", key, "ok, but its tool never returned (entered %d times)", f.enters)
	case own && answered.Status != events.StatusOK && !f.accepted.MayFail && answered.Code != events.CodeInterrupted:
		c.failf("I1", key, "ended as %s, want a result", answered.Code)
	}
	if !asked.Rejected {
		c.enteredOnce(f)
	}
	if answered.Code == events.CodeInterrupted && !asked.Rejected {
		inside := f.enters > f.exits
		if own {
			_, inside = f.entered()
		}
		if c.undisturbed(f.turnFacts) && !inside {
			c.failf("I7", key, "interrupted without a fault (entered %d, left %d)", f.enters, f.exits)
		}
		if reentered(effect) && c.hit != nil && len(c.hit) == 0 {
			c.failf("I7", key, "a tool of effect %s is interrupted in a run without faults", effect)
		}
	}
}

// enteredOnce checks that a tool that must not be entered again was not.
func (c *checker) enteredOnce(f *callFacts) {
	effect := f.effect()
	if (effect == "unsafe" || effect == "replay" && len(f.questions) == 0) && f.enters > 1 {
		c.failf("I2", f.name, "effect %s, entered %d times", effect, f.enters)
	}
}

// inTime compares the end of a turn with the time at which it was accepted, its last question was
// decided, or the last fault was over, whichever is latest.
func (c *checker) inTime(t *turnFacts) {
	from := t.accepted.At
	if c.facts.Healed.After(from) {
		from = c.facts.Healed
	}
	for _, f := range t.calls {
		for _, q := range f.questions {
			if q.answer != nil && q.answer.Time.After(from) {
				from = q.answer.Time
			}
		}
	}
	if c.facts.Within <= 0 || from.IsZero() {
		return
	}
	if took := t.own().response.Time.Sub(from); took > c.facts.Within {
		c.failf("I12", t.key, "ended %s after it was accepted, undisturbed and decided, want %s", took.Round(time.Millisecond), c.facts.Within)
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
