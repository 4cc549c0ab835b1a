package natstool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

const (
	learnTimeout = 2 * time.Second // for all answers
	learnPause   = 5 * time.Second // between two questions of which the first had no answer
)

// endpoint is what was learned of what a tool calls. It is immutable.
type endpoint struct {
	subject string
	about   tools.Description
	input   *model.Model // nil if it declares none
	output  *model.Value // nil if it declares none
	until   time.Time    // when it is no longer fresh
}

// Describe implements [tools.Describer].
func (t *Tool) Describe(ctx context.Context) (tools.Description, error) {
	e := t.learned.Load()
	if e == nil || time.Now().After(e.until) {
		if !t.begin() {
			return tools.Description{}, failure("describe "+t.name(), events.CodeToolError, "the tool is closed: its worker stops")
		}
		defer t.running.Done()
		var err error
		if e, err = t.learn(ctx); err != nil {
			return tools.Description{}, err
		}
	}
	return e.about, nil
}

// Known implements [tools.Describer]. What is not known, or no longer fresh, is asked for in the
// background if the manifest gives a name to ask for or trusts what will be told.
func (t *Tool) Known() (tools.Description, bool) {
	e := t.learned.Load()
	t.refresh(e)
	if e == nil {
		return tools.Description{}, false
	}
	return e.about, true
}

// endpoint returns where a call goes. It asks only if it has no subject.
func (t *Tool) endpoint(ctx context.Context, op string) (*endpoint, error) {
	e := t.learned.Load()
	switch {
	case t.t.Subject != "" && t.reserved(t.t.Subject):
		return nil, failure(op, events.CodeToolError, fmt.Sprintf("subject %q is one of the product's own, where no tool may be", t.t.Subject))
	case t.t.Subject == "" && (e == nil || t.gone.Load()):
		learned, err := t.learn(ctx)
		if err == nil {
			return learned, nil
		}
		if ctx.Err() != nil {
			return nil, (&conversation{tool: t, op: op, ctx: ctx}).ended()
		}
		return nil, err
	case e != nil:
		t.refresh(e)
		return e, nil
	case !plainSubject(t.t.Subject):
		return nil, failure(op, events.CodeToolError, fmt.Sprintf("%q is no subject that one can publish to", t.t.Subject))
	}
	t.refresh(nil)
	return &endpoint{subject: t.t.Subject}, nil
}

// refresh asks in the background, unless e is fresh, or it was asked a moment ago, or there is
// nothing to learn.
func (t *Tool) refresh(e *endpoint) {
	now := time.Now()
	if e != nil && now.Before(e.until) || t.t.Service == "" && !t.t.TrustMetadata || now.UnixNano() < t.next.Load() {
		return
	}
	t.ask()
}

// learn asks what is called, and waits.
func (t *Tool) learn(ctx context.Context) (*endpoint, error) {
	select {
	case r := <-t.ask():
		e, _ := r.Val.(*endpoint)
		return e, r.Err
	case <-ctx.Done():
		return nil, wrap("describe "+t.name(), events.CodeTimeout, "no service has answered in time", context.Cause(ctx))
	}
}

// args returns the arguments to send: as the endpoint's own schema has them, if it has one.
func (e *endpoint) args(op string, call *tools.Call) (json.RawMessage, error) {
	if e.input != nil {
		args, changed, faults := e.input.Conform(call.Args)
		switch {
		case len(faults) > 0:
			return nil, badArgs(op, call.Name, faults)
		case changed:
			data, err := events.AppendJSON(nil, args)
			if err != nil {
				return nil, wrap(op, events.CodeBadArgs, "the arguments have no JSON form", err)
			}
			return data, nil
		}
	}
	data, err := call.EncodedArgs()
	if err != nil {
		return nil, wrap(op, events.CodeBadArgs, "the arguments have no JSON form", err)
	}
	return data, nil
}

func badArgs(op, tool string, faults []model.Violation) error {
	refused := &model.Refused{Model: tool, Violations: faults}
	return wrap(op, events.CodeBadArgs, "bad_args:"+refused.Error(), refused)
}
