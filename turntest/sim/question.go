package sim

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Kinds of messages and records that questions bring.
const (
	kindAnswer  = "tool_call_response"
	kindExpiry  = "expiry"
	kindAsk     = "ask"
	earlyAnswer = 2 * time.Minute // how long an answer may wait for its question
)

// script is what the tool of a turn asks: some questions one after the other, or the first few
// at once.
type script struct {
	questions int
	together  int  // how many of the first are open at the same time
	fickle    bool // it asks something else whenever it runs
	steps     bool // it does a durable step before each question
	impatient bool // it gives up to wait for some
}

// newScript draws one; every second turn asks nothing.
func (w *world) newScript() *script {
	if w.chance(1, 2) {
		return nil
	}
	return &script{
		questions: 1 + w.rng.IntN(3), together: 1 + w.rng.IntN(3), fickle: w.chance(1, 16), steps: w.chance(1, 3), impatient: w.chance(1, 4),
	}
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

// answer is what a message says about a question.
type answer struct {
	id      string
	outcome idempotency.Outcome
	value   string
}

// bad is a value that no question takes.
const bad = "bad"

var errBad = errors.New("simulated: the answer does not fit the question")

// check holds an answer against the stored question.
func (a *answer) check(idempotency.Record) error {
	if a.value == bad {
		return errBad
	}
	return nil
}

// planAnswers draws answers to questions that may not be asked yet.
func (w *world) planAnswers(t *turn) {
	if t.script == nil {
		return
	}
	for _, group := range t.script.groups() {
		for _, id := range group {
			if w.chance(1, 8) {
				w.answer(t, id)
			}
		}
	}
}

// askedNow draws who answers a question that is on the screen: nobody, one, or several, with
// the same or with another answer, or one that does not fit; and whether its time is over
// while all sorts of things happen.
func (w *world) askedNow(ask subjects.Record) {
	for _, t := range w.turns {
		if t.key != ask.Key {
			continue
		}
		for w.chance(3, 5) {
			w.answer(t, ask.ID)
		}
		if w.chance(1, 4) {
			w.unsent = append(w.unsent, w.newAnswerMessage(t, &answer{ask.ID, idempotency.Expired, ""}))
		}
	}
}

func (w *world) answer(t *turn, id string) {
	value := []string{"yes", "yes", "no", bad}[w.rng.IntN(4)]
	w.unsent = append(w.unsent, w.newAnswerMessage(t, &answer{id, idempotency.Answered, value}))
}

func (w *world) newAnswerMessage(t *turn, a *answer) *message {
	kind := kindAnswer
	if a.outcome == idempotency.Expired {
		kind = kindExpiry
	}
	return &message{w: w, turn: t, kind: kind, answer: a, subject: w.sim.space.In("default", kind, app, workflow, chat)}
}

// mayVanish reports whether a message can be purged so that somebody can still notice: a sweep
// finds claimed turns, and the only answer to a question is not worth a schedule.
func (w *world) mayVanish(m *message) bool {
	h := w.history(m.turn)
	if m.answer != nil {
		q := h.questions[m.answer.id]
		return q != nil && q.answer != nil
	}
	return h.claim != nil
}

// asleep looks for lost wake-ups, when everything has healed and nothing is on its way: a turn
// that is parked although one of its questions is decided, or somebody has cancelled it. It
// changes nothing.
func (w *world) asleep() bool {
	for _, t := range w.turns {
		h := w.history(t)
		if t.script == nil || len(h.responses) > 0 || !h.parked() || t.purged || w.faults.struck[StaleRead] > 0 {
			continue
		}
		if h.cancel != nil {
			w.violatef("%s is parked, was cancelled, and nobody takes it", t.id.Turn)
		}
		for _, id := range w.waiting[h.parks[len(h.takeovers)+1].Meta.Nonce] {
			if q := h.questions[id]; q != nil && q.answer != nil {
				w.violatef("%s is parked, question %s is %s, and nobody takes it", t.id.Turn, id, q.answer.Meta.Verdict)
			}
		}
	}
	return len(w.violations) > 0
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
			waiting = waiting || t.waits
		}
	}
	if waiting {
		w.news++
	}
	return waiting
}

// timers ends the time of all open questions, and reports whether there are any.
func (w *world) timers() bool {
	found := false
	for _, t := range w.turns {
		h := w.history(t)
		if t.script == nil || len(h.responses) > 0 {
			continue
		}
		for _, group := range t.script.groups() {
			for _, id := range group {
				if q := h.questions[id]; q != nil && q.ask != nil && q.answer == nil {
					w.unsent = append(w.unsent, w.newAnswerMessage(t, &answer{id, idempotency.Expired, ""}))
					found = true
				}
			}
		}
	}
	return found
}

// content is what a question says: the same whenever its tool comes to it, unless it is fickle.
func (t *turn) content(id string, run int) string {
	if t.script.fickle {
		return fmt.Sprintf("%s of %s in run %d", id, t.id.Turn, run)
	}
	return id + " of " + t.id.Turn
}

// ackOf is the event that closes a question.
func ackOf(decided idempotency.Record) ([]byte, error) {
	return fmt.Appendf(nil, `{"type":"chat.%s","data":{"outcome":%q}}`, "tool_call_ack", decided.Meta.Verdict), nil
}

// responseOf is the event that ends a turn.
func responseOf(code events.Code, payload string) []byte {
	status := events.StatusError
	if code == "" {
		status = events.StatusOK
	}
	return fmt.Appendf(nil, `{"type":"chat.tool_response","data":{"status":%q,"code":%q,"payload":%s}}`, status, code, payload)
}
