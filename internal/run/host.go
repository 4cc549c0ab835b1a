package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/answers"
	"github.com/oneturn/oneturn/internal/callhost"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// This file implements what a tool can call while it runs. Each operation counts and names what it creates, then stores it
// under the hold of the run (Run.do); question.go, wait.go and interaction.go have the parts of a question.

// host is what one attempt of a tool can do besides computing: ask people, show surfaces, store steps. It implements
// [tools.Host] on the journal. Numbering begins again with each attempt and each run, so that all of them ask
// the same questions; how many a call may have is counted for all of its runs and attempts together.
type host struct {
	run   *Run
	clock *engine.Clock
	guard redactingHost // what the tool gets

	// Guarded by run.mu.
	names callhost.Names       // of the questions and surfaces of the attempt
	steps map[string]time.Time // named steps that have begun and are not stored, since when
}

// Limits of what one call may have in the journal: answers, later attempts and takeovers read all of it.
const (
	maxQuestions = 256
	maxSurfaces  = 1000
	maxSteps     = 1000

	// maxRecords bounds the records of all calls of a turn. One read of the journal returns 10,000; a turn with more could not be
	// taken over. The rest is for calls and responses.
	maxRecords = 6000
)

// Ask implements [tools.Host].
func (h *host) Ask(ctx context.Context, asks tools.Question) (tools.Answer, error) {
	h.clock.Stop() // people are slow, and so may be the server
	defer h.clock.Go()
	if ctx.Err() != nil {
		return tools.Answer{}, h.stopped(ctx)
	}
	q, err := h.question(ctx, asks)
	if err != nil {
		return tools.Answer{}, err
	}
	reply, err := h.run.ask(h, q)
	if err == nil && reply.Outcome == idempotency.Open {
		reply, err = h.run.awaitReply(ctx, h, q)
	}
	switch {
	case err != nil:
		return tools.Answer{}, err
	case reply.Outcome == idempotency.Expired:
		return tools.Answer{}, &events.Error{Code: events.CodeExpired, Op: "ask", Msg: fmt.Sprintf(
			"question %.80q was not answered in time", q.callID)}
	case len(reply.Data) == 0:
		reply.Data = json.RawMessage("null")
	}
	value, err := answers.Open(h.run.cfg.SecretKeys, h.run.t.Key, q.ID, reply.Data)
	if err != nil {
		return tools.Answer{}, h.run.end(err)
	}
	return tools.Answer{ID: q.callID, Value: value, Secret: asks.Secret}, nil
}

// stopped returns why a call whose context has ended has to return.
func (h *host) stopped(ctx context.Context) error {
	if err := h.run.refuses(h); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// Show implements [tools.Host].
func (h *host) Show(ctx context.Context, s tools.Surface) (string, error) {
	if ctx.Err() != nil {
		return "", h.stopped(ctx)
	}
	i := interaction{
		name: s.Name, number: s.Number, tool: h.toolOf(s.Tool), component: s.Component, display: s.Display, kind: events.InteractionUISurface, payload: s.Payload,
	}
	id, err := h.nameSurface(&i)
	if err != nil {
		return "", err
	}
	call, err := h.event(ctx, id, &i)
	if err != nil {
		return "", err
	}
	event, err := events.Encode(events.KindToolCall, call, h.run.cfg.Now())
	if err != nil {
		return "", err
	}
	return call.ToolCallID, h.run.do(h, func(hold idempotency.Hold) error {
		return displayError(h.run.persist(func(ctx context.Context) error { return h.run.cfg.Journal.Show(ctx, hold, id, event) }))
	})
}

// Dismiss implements [tools.Host].
func (h *host) Dismiss(ctx context.Context, id string) error {
	if ctx.Err() != nil {
		return h.stopped(ctx)
	}
	r := h.run
	r.mu.Lock()
	name, tool, err := h.names.Displayed(r.t.CallID, id)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	e := r.t.interactionEvent(name)
	e.ToolName = tool
	event, err := events.Encode(events.KindToolCallDismiss, e.Dismiss(), r.cfg.Now())
	if err != nil {
		return err
	}
	return r.do(h, func(hold idempotency.Hold) error {
		return displayError(r.persist(func(ctx context.Context) error { return r.cfg.Journal.Dismiss(ctx, hold, name, event) }))
	})
}

// displayError returns an error of an operation that only changes the display to the tool: the turn continues.
func displayError(err error) error {
	if err == nil {
		return nil
	}
	if Unstorable(err) {
		return tooLargeToStore(err)
	}
	return err
}

// StepResult implements [tools.Host].
func (h *host) StepResult(ctx context.Context, name string) (result json.RawMessage, done bool, err error) {
	if ctx.Err() != nil {
		return nil, false, h.stopped(ctx)
	}
	r := h.run
	if err := h.countStep(name); err != nil {
		return nil, false, err
	}
	err = r.do(h, func(hold idempotency.Hold) error {
		if result, done = r.before.CallOf(r.t.Key).Step(name); done {
			return nil
		}
		return r.classify(r.persist(func(ctx context.Context) (err error) {
			result, done, err = r.cfg.Journal.StepResult(ctx, hold, name)
			return err
		}))
	})
	if err == nil && !done {
		r.mu.Lock()
		defer r.mu.Unlock()
		if h.steps == nil {
			h.steps = map[string]time.Time{}
		}
		h.steps[name] = time.Now()
	}
	return result, done, err
}

// StoreStep implements [tools.Host]. The step has been done, so its result is stored whatever happens to the tool
// meanwhile.
func (h *host) StoreStep(_ context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	r := h.run
	var counts json.RawMessage
	err := r.do(h, func(hold idempotency.Hold) error {
		return r.classify(r.persist(func(ctx context.Context) (err error) {
			counts, err = r.cfg.Journal.Step(ctx, hold, name, result)
			return err
		}))
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(h.steps, name)
	return counts, err
}

// countStep counts a step of the call.
func (h *host) countStep(name string) error {
	h.run.mu.Lock()
	defer h.run.mu.Unlock()
	return h.run.count(h.run.usedNames().Steps, name, maxSteps, "steps", 1)
}

// toolOf returns the tool of a question or surface: the given one, else the one of the call.
func (h *host) toolOf(tool string) string { return cmp.Or(tool, h.run.t.Binding.Tool) }

// nameQuestion gives a question its id in the call.
func (h *host) nameQuestion(i *interaction) (string, error) {
	h.run.mu.Lock()
	defer h.run.mu.Unlock()
	return h.names.Question(i.name, i.number, i.tool, func(id string) error {
		return h.run.count(h.run.usedNames().Questions, id, maxQuestions, "questions", 7) // with answer, ack, taken, dismiss, park and takeover
	})
}

// nameSurface gives a surface its id in the call.
func (h *host) nameSurface(i *interaction) (string, error) {
	h.run.mu.Lock()
	defer h.run.mu.Unlock()
	return h.names.Surface(i.name, i.number, i.tool, func(id string) error {
		return h.run.count(h.run.usedNames().Surfaces, id, maxSurfaces, "surfaces", 2) // with its dismiss
	})
}

// count adds an id, which takes some records, to the used ids of a call, unless this run or another has used it before. The mutex is
// held.
func (r *Run) count(used map[string]bool, id string, limit int, what string, records int) error {
	token := subjects.Token(id)
	switch {
	case used[token]:
		return nil
	case len(used) >= limit:
		return tooMany(what, limit)
	case r.records+records > maxRecords:
		return &events.Error{Code: events.CodeTooLarge, Op: "host", Msg: fmt.Sprintf(
			"the questions, surfaces and steps of this turn have %d records, and no turn may have more: spread them over several turns", r.records)}
	}
	r.records += records
	used[token] = true
	return nil
}

// tooMany is the error of a call that has reached a limit.
func tooMany(what string, limit int) error {
	return &events.Error{Code: events.CodeTooLarge, Op: "host", Msg: fmt.Sprintf(
		"this call has %d %s, and no call may have more: combine some of them, or spread them over several turns", limit, what)}
}
