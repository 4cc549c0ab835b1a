package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// desk is what one attempt of a tool can reach: people, the screen and the memory of its turn.
// It implements [tools.Host] on the journal. Each attempt numbers what it puts up anew, as each
// run does, so that it comes to the same questions; how much a call may put up is counted for all
// of its runs and attempts together.
type desk struct {
	run   *run
	clock *engine.Clock
	guard guardedDesk // what the tool is given

	// Guarded by run.mu.
	asked, shown int                  // numbers given to the last ones without a name
	names        map[string]string    // what was put up, by id: the tool_name of its event
	steps        map[string]time.Time // named steps that are being done, since when
}

// What one call may leave in the journal. Whoever answers, asks again or takes a turn over reads
// all of it.
const (
	maxQuestions = 256
	maxSurfaces  = 1000
	maxSteps     = 1000
)

// Ask implements [tools.Host].
func (d *desk) Ask(ctx context.Context, asks tools.Question) (tools.Answer, error) {
	d.clock.Stop() // people are slow, and so may be the server
	defer d.clock.Go()
	if ctx.Err() != nil {
		return tools.Answer{}, d.stopped(ctx)
	}
	q, err := d.question(ctx, asks)
	if err != nil {
		return tools.Answer{}, err
	}
	reply, err := d.run.ask(d, q)
	if err == nil && reply.Outcome == idempotency.Open {
		reply, err = d.run.wait(ctx, d, q)
	}
	switch {
	case err != nil:
		return tools.Answer{}, err
	case reply.Outcome == idempotency.Expired:
		return tools.Answer{}, &events.Error{Code: events.CodeExpired, Op: "ask", Msg: fmt.Sprintf(
			"nobody answered question %.80q in time", q.callID)}
	case len(reply.Data) == 0:
		reply.Data = json.RawMessage("null")
	}
	value, err := d.run.h.openAnswer(d.run.t.key, q.ID, reply.Data)
	if err != nil {
		return tools.Answer{}, d.run.end(err)
	}
	return tools.Answer{ID: q.callID, Value: value, Secret: asks.Secret}, nil
}

// stopped is why a call whose context has ended has to return.
func (d *desk) stopped(ctx context.Context) error {
	if err := d.run.closed(d); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// Show implements [tools.Host].
func (d *desk) Show(ctx context.Context, s tools.Surface) (string, error) {
	if ctx.Err() != nil {
		return "", d.stopped(ctx)
	}
	put := exhibit{
		name: s.Name, number: s.Number, tool: s.Tool, component: s.Component, display: s.Display, interaction: events.InteractionUISurface, payload: s.Payload,
	}
	id, err := d.nameSurface(&put)
	if err != nil {
		return "", err
	}
	call, err := d.event(ctx, id, &put)
	if err != nil {
		return "", err
	}
	event, err := events.Encode(events.KindToolCall, call, d.run.h.Now())
	if err != nil {
		return "", err
	}
	return call.ToolCallID, d.run.do(d, func(hold idempotency.Hold) error {
		return shown(d.run.persist(func(ctx context.Context) error { return d.run.h.Journal.Show(ctx, hold, id, event) }))
	})
}

// Dismiss implements [tools.Host].
func (d *desk) Dismiss(ctx context.Context, id string) error {
	if ctx.Err() != nil {
		return d.stopped(ctx)
	}
	r := d.run
	call, ask, ok := events.ParseQuestionID(id)
	r.mu.Lock()
	name, known := d.names[ask]
	r.mu.Unlock()
	if !ok || call != r.t.callID || !known {
		return &events.Error{Code: events.CodeToolError, Op: "dismiss", Msg: fmt.Sprintf(
			"this call has put up nothing with id %.200q: use the id that Show or Ask returned", id)}
	}
	e := r.t.exhibitEvent(ask)
	e.ToolName = name
	event, err := events.Encode(events.KindToolCallDismiss, e.Dismiss(), r.h.Now())
	if err != nil {
		return err
	}
	return r.do(d, func(hold idempotency.Hold) error {
		return shown(r.persist(func(ctx context.Context) error { return r.h.Journal.Dismiss(ctx, hold, ask, event) }))
	})
}

// shown is an error of what only changes the screen: it says nothing about the turn.
func shown(err error) error {
	if err == nil {
		return nil
	}
	if errorsRefused(err) {
		return tooBig(err)
	}
	return err
}

// StepResult implements [tools.Host].
func (d *desk) StepResult(ctx context.Context, name string) (result json.RawMessage, done bool, err error) {
	if ctx.Err() != nil {
		return nil, false, d.stopped(ctx)
	}
	r := d.run
	if err := d.begin(name); err != nil {
		return nil, false, err
	}
	err = r.do(d, func(hold idempotency.Hold) error {
		if result, done = r.before.Step(name); done {
			return nil
		}
		return r.judge(r.persist(func(ctx context.Context) (err error) {
			result, done, err = r.h.Journal.StepResult(ctx, hold, name)
			return err
		}))
	})
	if err == nil && !done {
		r.mu.Lock()
		defer r.mu.Unlock()
		if d.steps == nil {
			d.steps = map[string]time.Time{}
		}
		d.steps[name] = time.Now()
	}
	return result, done, err
}

// begin notes that the attempt comes to a step.
func (d *desk) begin(name string) error {
	d.run.mu.Lock()
	defer d.run.mu.Unlock()
	return count(d.run.keeps().Steps, name, maxSteps, "steps")
}

// count notes that a call puts up something, unless it did so before, in this run or another.
func count(kept map[string]bool, id string, limit int, what string) error {
	token := subjects.Token(id)
	if !kept[token] && len(kept) >= limit {
		return tooMany(what, limit)
	}
	kept[token] = true
	return nil
}

// tooMany is the end of what a call may put up, or remember.
func tooMany(what string, limit int) error {
	return &events.Error{Code: events.CodeTooLarge, Op: "desk", Msg: fmt.Sprintf(
		"this call has %d %s, and no call may have more: put what belongs together into one, or spread it over several turns", limit, what)}
}

// StoreStep implements [tools.Host]. The step has been done, so its result is stored whatever
// becomes of the tool meanwhile.
func (d *desk) StoreStep(_ context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	r := d.run
	var counts json.RawMessage
	err := r.do(d, func(hold idempotency.Hold) error {
		return r.judge(r.persist(func(ctx context.Context) (err error) {
			counts, err = r.h.Journal.Step(ctx, hold, name, result)
			return err
		}))
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(d.steps, name)
	return counts, err
}

// nameQuestion gives a question its id in the call.
func (d *desk) nameQuestion(put *exhibit) (string, error) {
	d.run.mu.Lock()
	defer d.run.mu.Unlock()
	return d.name(put, &d.asked, events.AskID, func(id string) error {
		return count(d.run.keeps().Questions, id, maxQuestions, "questions")
	})
}

// nameSurface gives what is shown its id in the call.
func (d *desk) nameSurface(put *exhibit) (string, error) {
	d.run.mu.Lock()
	defer d.run.mu.Unlock()
	return d.name(put, &d.shown, events.SurfaceID, func(id string) error {
		return count(d.run.keeps().Surfaces, id, maxSurfaces, "surfaces")
	})
}

// name gives what is put up its id in the call, by its name or its number. The mutex is held.
func (d *desk) name(put *exhibit, last *int, id func(name string, n int) string, count func(id string) error) (string, error) {
	if put.tool == "" {
		put.tool = d.run.t.binding.Tool
	}
	number := put.number
	if put.name == "" && number == 0 {
		*last++
		number = *last
	}
	given := id(put.name, number)
	if _, twice := d.names[given]; twice {
		return "", &events.Error{Code: events.CodeToolError, Op: "desk", Msg: fmt.Sprintf(
			"this run has put up %.80s before: a name stands for one question or surface of the call, also after a crash; "+
				"count in it what repeats, or leave it out", given)}
	}
	if err := count(given); err != nil {
		return "", err
	}
	if d.names == nil {
		d.names = map[string]string{}
	}
	d.names[given] = put.tool
	return given, nil
}
