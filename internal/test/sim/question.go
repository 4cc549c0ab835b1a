package sim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// What the tools ask, and what people do about it: answer, answer twice, answer wrongly or early, or never. Expiries
// come from schedules.

// script is what the tool of a turn asks: some questions one after the other, or the first few
// at the same time.
type script struct {
	questions int
	together  int           // how many of the first are open at the same time
	timeout   time.Duration // of each question
	fickle    bool          // it asks something else whenever it runs
	steps     bool          // it does a durable step before each question
	impatient bool          // it stops waiting for some
}

// newScript draws one; every second turn asks nothing.
func (w *world) newScript() *script {
	if w.chance(1, 2) {
		return nil
	}
	s := &script{
		questions: 1 + w.rng.IntN(3), together: 1 + w.rng.IntN(3), fickle: w.chance(1, 16), steps: w.chance(1, 3), impatient: w.chance(1, 4),
		timeout: time.Hour,
	}
	if w.chance(1, 4) {
		s.timeout = time.Duration(1+w.rng.IntN(8)) * time.Second
	}
	return s
}

// groups are the questions that are open at the same time, by id.
func (s *script) groups() [][]string {
	var all [][]string
	for i := 1; i <= s.questions; i++ {
		id := "q" + strconv.Itoa(i)
		if i > 1 && i <= s.together {
			all[0] = append(all[0], id)
			continue
		}
		all = append(all, []string{id})
	}
	return all
}

// question is what the tool asks: the same whenever it comes to it, unless it is fickle.
func (s *script) question(id string, run int) tools.Question {
	q := tools.Question{
		Name: id, Component: "Form", Payload: json.RawMessage(`{}`), Timeout: s.timeout,
		Schema: json.RawMessage(`{"type":"string","enum":["yes","no"]}`),
	}
	if s.fickle {
		q.Component = fmt.Sprintf("FormOfRun%d", run)
	}
	return q
}

// answer is what a message brings to a question.
type answer struct {
	id      string
	outcome idempotency.Outcome
	value   string // as JSON
}

// Values of answers. No question takes the last one.
const (
	yes = `"yes"`
	no  = `"no"`
	bad = `"bad"`
)

// earlyFor is how long an answer waits for its question.
const earlyFor = 2 * time.Minute

// planAnswers draws answers to questions that may not be asked yet.
func (w *world) planAnswers(t *turn) {
	for _, id := range t.asks() {
		if w.chance(1, 8) {
			w.answer(t, id)
		}
	}
}

// askedNow draws who answers a question that is displayed: no person, one, or several, with
// the same or with another answer, or one that does not fit; and whether an operator ends its time.
func (w *world) askedNow(ask subjects.Record) {
	for _, t := range w.turns {
		if t.key != ask.OfTurn() {
			continue
		}
		t.pool = w.poolOf(ask)
		id := t.askedBy(ask.Call, ask.ID)
		for w.chance(3, 5) {
			w.answer(t, id)
		}
		if w.chance(1, 6) {
			w.unsent = append(w.unsent, w.newExpiryMessage(t, &events.Expire{
				TurnID: t.id, Workflow: workflow, Pool: t.pool, Key: ask.String(), Ask: ask.ID, ToolCallID: t.questionID(id), Forced: true,
			}))
		}
	}
}

// poolOf is the pool whose workers have asked, which people find in the event: a cancel of a message in another pool continues with
// its corrections there.
func (w *world) poolOf(ask subjects.Record) string {
	asked, err := events.ReadCall(w.stored(ask.Name()).Data)
	if err != nil {
		w.violatef("question %s cannot be read: %v", ask.Name(), err)
		return subjects.DefaultPool
	}
	in, _ := w.sim.space.ParseIn(asked.Answer.Subject)
	return in.Pool
}

// askID is the id of a question in a turn: for a call of a program with the id of the call.
func askID(call, question string) string {
	if call == "" {
		return question
	}
	return call + "/" + question
}

// cutAskID takes it apart.
func cutAskID(id string) (call, question string) {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		return id[:i], id[i+1:]
	}
	return "", id
}

// askedBy is the id of a question in the turn, by the tokens of its records.
func (t *turn) askedBy(call, question string) string {
	if c := t.callOf(call); c != nil {
		return askID(c.id, question)
	}
	return question
}

// askOf is the id of the question that an expiry is for.
func (t *turn) askOf(e *events.Expire) string {
	for _, c := range t.calls {
		if t.keyOf(c.id).String() == e.Key {
			return askID(c.id, e.Ask)
		}
	}
	return e.Ask
}

// keyOf is the key of the records of a call, "" for the turn's own.
func (t *turn) keyOf(call string) subjects.Key {
	if call == "" {
		return t.key
	}
	return t.key.WithCall(subjects.StepCall(call))
}

// asks are the ids of all questions that tools of the turn may ask.
func (t *turn) asks() (ids []string) {
	ids = t.script.ids("")
	for _, c := range t.calls {
		ids = append(ids, c.script.ids(c.id)...)
	}
	return ids
}

func (s *script) ids(call string) (ids []string) {
	if s == nil {
		return nil
	}
	for _, group := range s.groups() {
		for _, id := range group {
			ids = append(ids, askID(call, id))
		}
	}
	return ids
}

// scriptOf is what asks a question.
func (t *turn) scriptOf(id string) *script {
	if call, _ := cutAskID(id); call != "" {
		return t.callNamed(call).script
	}
	return t.script
}

func (t *turn) questionID(ask string) string {
	call, question := cutAskID(ask)
	id := events.CallID(t.id, t.key.Turn)
	if call != "" {
		id = events.StepID(id, call)
	}
	return events.QuestionID(id, question)
}

func (w *world) answer(t *turn, id string) {
	w.unsent = append(w.unsent, w.newAnswerMessage(t, &answer{id, idempotency.Answered, []string{yes, yes, no, bad}[w.rng.IntN(4)]}))
}

// mayVanish reports whether a message can be purged so that it can still be noticed: a sweep
// finds claimed turns, and the only answer to a question is not worth a schedule.
func (w *world) mayVanish(m *message) bool {
	h := w.history(m.turn)
	if m.chat != nil {
		text := w.textOf(m.chat)
		return text != nil && text.Meta.Outcome != idempotency.DueNothing
	}
	if m.answer != nil {
		q := h.questions[m.answer.id]
		return q != nil && q.answer != nil
	}
	return h.claim != nil
}

// asleep looks for lost wake-ups, when everything has healed and nothing is on its way: a turn
// that is parked although one of its questions is decided, or it is cancelled it. It
// changes nothing.
func (w *world) asleep() bool {
	for _, t := range w.turns {
		h := w.history(t)
		if len(t.asks()) == 0 || len(h.responses) > 0 || !h.parked() || t.purged || t.sawStaleRead > 0 || w.isDeferred(t) {
			continue
		}
		if h.cancel != nil {
			w.violatef("%s is parked, was cancelled, and no message takes it", t.id.Turn)
		}
		for _, id := range t.waitsFor(h.parks[len(h.takeovers)+1]) {
			if q := h.questions[id]; q != nil && q.answer != nil {
				w.violatef("%s is parked, question %s is %s, and no message takes it", t.id.Turn, id, q.answer.Meta.Outcome)
			}
		}
	}
	return len(w.violations) > 0
}

// waitsFor are the questions that were open when a turn was parked.
func (t *turn) waitsFor(park *idempotency.Record) (ids []string) {
	var p struct {
		Open []string `json:"open"`
	}
	_ = json.Unmarshal(park.Data, &p) // the checker of the records reads it
	for _, ref := range p.Open {
		if call, question, ok := strings.Cut(ref, "."); ok {
			ids = append(ids, t.askedBy(call, question))
		} else {
			ids = append(ids, ref)
		}
	}
	return ids
}

// poll lets those who wait in memory look again, as they do every few seconds. It reports
// whether there are any.
func (w *world) poll() bool {
	if w.polled == len(w.store.log) {
		return false
	}
	w.polled = len(w.store.log)
	waiting := false
	for _, p := range w.processes {
		for _, t := range p.threads {
			for _, x := range t.fibers {
				if x.idle != nil {
					x.idle()
					waiting = true
				}
			}
		}
	}
	return waiting
}

// schedule is the end of the time for an answer, as the server has it.
type schedule struct {
	at time.Time
	t  *turn
	e  events.Expire
}

// scheduled is what the server does with a schedule: the last one under a name counts.
func (w *world) scheduled(e *events.Expire) {
	for _, t := range w.turns {
		if strings.HasPrefix(e.Key, t.key.WithCall("").String()) {
			w.schedules[e.Key+"/"+e.Ask] = schedule{e.ExpiresAt, t, *e}
			w.tracef("  the time for %s ends in %s", e.ToolCallID, e.ExpiresAt.Sub(w.now))
		}
	}
}

// ring publishes the expiries and the deferred messages that are due, and reports whether there are any.
func (w *world) ring() bool {
	found := w.again()
	for _, t := range w.turns {
		for _, id := range t.asks() {
			call, question := cutAskID(id)
			name := t.keyOf(call).String() + "/" + question
			if s, ok := w.schedules[name]; ok && !s.at.After(w.now) {
				delete(w.schedules, name)
				w.unsent = append(w.unsent, w.newExpiryMessage(t, &s.e))
				found = true
			}
		}
	}
	return found
}

// timers lets time pass until the next question expires or the next message comes again, and reports
// whether there is one.
func (w *world) timers() bool {
	var first time.Time
	for _, s := range w.schedules {
		if first.IsZero() || s.at.Before(first) {
			first = s.at
		}
	}
	for _, a := range w.deferrals {
		if first.IsZero() || a.At.Before(first) {
			first = a.At
		}
	}
	if first.IsZero() {
		return false
	}
	w.pass(max(0, first.Sub(w.now)))
	return w.ring()
}
