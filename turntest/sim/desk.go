package sim

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/mutant"
)

// desk handles the messages of a turn whose tool asks people: what handlers do around the
// journal, and no more.
type desk struct{ *thread }

func leave() handlers.Disposition { return handlers.Disposition{Do: handlers.Leave} }

func ack() handlers.Disposition { return handlers.Disposition{Do: handlers.Ack} }

func nakAfter(d time.Duration) handlers.Disposition {
	return handlers.Disposition{Do: handlers.Nak, Delay: d}
}

func (d desk) handle() handlers.Disposition {
	m, journal := d.m, d.p.journal
	binding, verdict := d.resolve()
	if verdict == events.CodeNoBinding && d.age() < bindingGrace {
		return nakAfter(time.Second)
	}
	if !d.fresh() {
		return leave()
	}
	c := idempotency.Claim{Key: m.turn.key, Lease: d.lease, Event: []byte(`{}`), Ack: ackOf}
	var decision idempotency.Decision
	var err error
	switch m.kind {
	case events.KindStructuredOutputReady:
		c.Fingerprint, c.Verdict = m.fingerprint, string(verdict)
		if verdict == "" {
			c.Effect, c.Digest = string(binding.Effect), binding.Digest
		}
		decision, err = journal.Claim(d.held, c)
	case events.KindCancel:
		c.Signal, c.Verdict = true, string(events.CodeCancelled)
		if err = journal.Cancel(d.held, c, []byte(`{}`)); err == nil {
			decision, err = journal.Claim(d.held, c)
		}
	case events.KindResume:
		decision, err = journal.Resume(d.held, idempotency.Resume{Key: m.turn.key, Lease: d.lease, Held: d.w.leaseHeld})
	default:
		var v idempotency.Verdicted
		v, err = journal.Answer(d.held, idempotency.Answer{
			Key: m.turn.key, ID: m.answer.id, Lease: d.lease, Outcome: m.answer.outcome,
			Digest: m.answer.value, Data: []byte(m.answer.value), Check: m.answer.check, Ack: ackOf,
		})
		if decision = v.Decision; err == nil {
			d.w.note(m, v)
			if v.Verdict == idempotency.Early {
				return d.early()
			}
		}
	}
	if err != nil {
		return leave()
	}
	return d.dispose(decision, verdict)
}

// early gives an answer back whose question is not asked yet, for a while.
func (d desk) early() handlers.Disposition {
	if d.age() > earlyAnswer {
		return ack()
	}
	return nakAfter(earlyAnswer / 4)
}

// dispose does what the journal has decided.
func (d desk) dispose(decision idempotency.Decision, verdict events.Code) handlers.Disposition {
	d.w.tracef("  %s: %s %s as epoch %d", d.p.name, decision.Action, decision.Code, decision.Hold.Epoch)
	switch decision.Action {
	case idempotency.Run:
		if verdict != "" { // claimed by a worker that knows the tool; this one does not
			d.w.hit(d.lease)
			return d.finish(decision.Hold, responseOf(events.CodeInterrupted, "null"))
		}
		return d.run(decision)
	case idempotency.Conclude:
		return d.finish(decision.Hold, responseOf(decision.Code, "null"))
	case idempotency.Conflict:
		err := letters{d.w}.Put(d.held, &handlers.Message{Lease: d.lease}, "", "conflict", nil)
		if err != nil {
			return leave()
		}
	case idempotency.Leave:
		return leave()
	case idempotency.Done, idempotency.Duplicate, idempotency.Signalled:
	}
	return ack()
}

// run enters the tool. What comes of it is a result, a code to end with, a parked turn, or
// nothing, when the turn is another run's.
func (d desk) run(decision idempotency.Decision) handlers.Disposition {
	r := &asking{desk: d, hold: decision.Hold, before: decision.Turn}
	payload, err := r.tool()
	var coded *events.Error
	switch {
	case err == nil:
		return d.finish(r.hold, responseOf("", payload))
	case errors.Is(err, errParked):
		return ack()
	case errors.As(err, &coded):
		return d.finish(r.hold, responseOf(coded.Code, "null"))
	}
	d.w.tracef("  %s: run %d is lost: %v", d.p.name, r.number, err)
	return leave()
}

func (d desk) finish(hold idempotency.Hold, event []byte) handlers.Disposition {
	ctx := d.held
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		ctx = last
	}
	if _, err := d.p.journal.Finish(ctx, hold, event); err != nil && !mutant.Planted(mutant.AckBeforePublish) {
		return leave()
	}
	return ack()
}

func (d desk) age() time.Duration { return d.w.now.Add(d.p.skew).Sub(d.m.stored) }

// resolve finds what the worker's manifests bind to the turn, or why it would not run.
func (d desk) resolve() (*bindings.Binding, events.Code) {
	b, err := d.p.manifest.set.Resolve(workflow, d.m.turn.agent, "Model")
	if err != nil {
		return nil, events.CodeNoBinding
	}
	if d.m.kind != events.KindStructuredOutputReady {
		return b, ""
	}
	if d.age() > maxEventAge {
		return b, events.CodeTooOld
	}
	data := map[string]any{"v": json.Number(strconv.Itoa(d.m.data))}
	if _, _, faults := b.Model.Conform(data); len(faults) > 0 {
		return b, events.CodeValidationFailed
	}
	return b, ""
}

// asking is a run of a tool that asks.
type asking struct {
	desk

	hold   idempotency.Hold
	before *idempotency.Turn // nil for a new one
	number int
	entry  *entry
}

var errParked = errors.New("simulated: the turn is parked")

// tool does its steps, asks its questions and returns.
func (r *asking) tool() (payload string, err error) {
	r.yield("enter")
	w, t := r.w, r.m.turn
	r.number = len(w.ledger)
	r.entry = &entry{
		turn: t.id.Turn, data: strconv.Itoa(r.m.data), epoch: r.hold.Epoch, token: r.hold.Token, nonce: r.hold.Nonce,
	}
	w.ledger = append(w.ledger, r.entry)
	w.checkEntry(t, r)
	w.tracef("  %s: tool of %s entered, epoch %d, run %d", r.p.name, t.id.Turn, r.hold.Epoch, r.number)
	for _, group := range t.script.groups() {
		if err := r.work(group[0]); err != nil {
			return "", err
		}
		if err := r.ask(group); err != nil {
			return "", err
		}
	}
	w.passes = append(w.passes, pass{t, end, r.hold})
	w.checkPass(t, end, r.hold)
	if err := r.work(end); err != nil {
		return "", err
	}
	if w.chance(1, 8) {
		r.entry.result = string(events.CodeUserError)
		return "", &events.Error{Code: events.CodeUserError, Msg: "no"}
	}
	r.entry.result = events.StatusOK
	return `{"run":` + strconv.Itoa(r.number) + `}`, nil
}

// work takes a few steps, of which one may be durable.
func (r *asking) work(name string) error {
	for range r.w.rng.IntN(3) {
		r.yield("in the tool")
	}
	if !r.m.turn.script.steps {
		return nil
	}
	_, done, err := r.p.journal.StepResult(r.held, r.hold, name)
	if err != nil || done {
		return err
	}
	r.w.checkStep(r, name)
	r.yield("in step " + name)
	_, err = r.p.journal.Step(r.held, r.hold, name, []byte(strconv.Itoa(r.number)))
	return err
}

// ask puts questions on the screen and waits until all are decided, in memory or parked.
func (r *asking) ask(group []string) error {
	open := map[string]idempotency.Reply{}
	for _, id := range group {
		content := r.m.turn.content(id, r.number)
		q := idempotency.Question{ID: id, Digest: content, Event: []byte(content)}
		if r.before != nil {
			known, _ := r.before.Question(id)
			q.Stored = known.Ask
		}
		reply, err := r.p.journal.Ask(r.held, r.hold, q)
		if err != nil {
			return err
		}
		open[id] = reply
	}
	for {
		if err := r.handOver(group, open); err != nil || len(open) == 0 {
			return err
		}
		stopped := r.p.ctx.Err() != nil
		switch {
		case r.hold.Effect == string(bindings.EffectUnsafe) && stopped:
			return &events.Error{Code: events.CodeInterrupted, Msg: "the worker stops"}
		case r.hold.Effect != string(bindings.EffectUnsafe) && (stopped || r.w.chance(1, 3)):
			r.w.waiting[r.hold.Nonce] = keysOf(group, open)
			parked, err := r.p.journal.Park(r.held, &r.hold, keysOf(group, open), []byte(`"state"`))
			switch {
			case err != nil:
				return err
			case parked:
				r.w.tracef("  %s: run %d is parked", r.p.name, r.number)
				return errParked
			}
		case r.m.turn.script.impatient && r.w.chance(1, 3):
			if err := r.giveUp(group, open); err != nil {
				return err
			}
		default:
			r.seen = r.w.news
			r.waits = r.hold.Effect == string(bindings.EffectUnsafe)
			r.yield("waits for an answer")
			r.waits = false
		}
		for _, id := range keysOf(group, open) {
			reply, err := r.p.journal.Look(r.held, r.hold, id)
			if err != nil {
				return err
			}
			open[id] = reply
		}
	}
}

// handOver gives the tool all answers that are there, in some order.
func (r *asking) handOver(group []string, open map[string]idempotency.Reply) error {
	ids := keysOf(group, open)
	r.w.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids {
		if open[id].Outcome == idempotency.Open {
			continue
		}
		if err := r.p.journal.Take(r.held, r.hold, id); err != nil {
			return err
		}
		delete(open, id)
		r.w.tracef("  %s: run %d has the answer to %s", r.p.name, r.number, id)
		r.w.passes = append(r.w.passes, pass{r.m.turn, id, r.hold})
		r.w.checkPass(r.m.turn, id, r.hold)
	}
	return nil
}

// giveUp has the tool go on without the answer to a question, which is the end of that for a tool
// with effect replay: see the handlers' desk.
func (r *asking) giveUp(group []string, open map[string]idempotency.Reply) error {
	ids := keysOf(group, open)
	id := ids[r.w.rng.IntN(len(ids))]
	if r.hold.Effect == string(bindings.EffectReplay) {
		if err := r.p.journal.Take(r.held, r.hold, id); err != nil {
			return err
		}
		r.w.hit(r.lease) // a later run that waits for it all the same may end as interrupted
	}
	delete(open, id)
	r.w.tracef("  %s: run %d waits no longer for %s", r.p.name, r.number, id)
	r.w.passes = append(r.w.passes, pass{r.m.turn, id, r.hold})
	r.w.checkPass(r.m.turn, id, r.hold)
	return nil
}

// keysOf returns the ids that are still open, in their order.
func keysOf(group []string, open map[string]idempotency.Reply) []string {
	var ids []string
	for _, id := range group {
		if _, ok := open[id]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}
