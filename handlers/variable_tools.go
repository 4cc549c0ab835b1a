package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/variables"
)

// Context variables whose value a tool reads (sources data_reference and data_entity) are read when the chat needs its variables
// first: before the triggers and handoff rules of a message, and before a tool gets its context. The values of all of them are
// stored in one step, and the first ones stored count. Nothing is stored before, so a worker that continues calls the tools again,
// which their effect, none, allows. A call that fails leaves null, and the turn or message continues.

// variableReader reads the variables of a chat for a turn or message.
type variableReader struct {
	h     *Handlers
	m     *message
	event *events.StructuredOutputReady // names the chat, and the turn or message
	below variables.Layers
	depth int    // of the turn
	trace string // context of the trace
}

// readVariables reads and stores the variables of the chat that have no value yet. In a workflow without such variables it costs
// nothing. The tools end with ctx; the error is why nothing is decided yet.
func (r *variableReader) readVariables(ctx context.Context) error {
	set, e := r.h.Bindings(), *r.event
	names := set.ReadByTools(e.Workflow)
	if len(names) == 0 {
		return nil
	}
	e.Agent, r.event = "", &e // it is the workflow that calls, whatever its agents may call
	storing, done := store.Context(r.m.Held, ctx)
	defer done()
	values, unread, err := r.h.Variables.Unread(storing, e.App, e.Chat, r.below, names)
	if err != nil || len(unread) == 0 {
		return err
	}
	chat := bindings.Chat{App: e.App, ID: e.Chat, Workflow: e.Workflow, User: e.UserID}
	maps.Copy(values, chat.Values())
	read := make(map[string]any, len(unread))
	for _, name := range unread {
		read[name], err = r.read(ctx, set, name, values)
		if err != nil {
			return err
		}
		values[name] = read[name] // a later template may name it
	}
	return r.fill(storing, read)
}

// read returns the value of a variable, nil if its tool fails. The error is why the call was stopped.
func (r *variableReader) read(ctx context.Context, set *bindings.Set, name string, values map[string]any) (any, error) {
	for _, c := range set.VariableCalls(r.event.Workflow, values) {
		if c.Variable != name {
			continue
		}
		out := r.call(ctx, &c, values)
		if out.Stopped != nil {
			return nil, out.Stopped
		}
		value, err := valueOf(&c, &out)
		if err != nil {
			r.warn("a context variable could not be read; it is null", "variable", throttle.Cut(name), "tool", c.Binding.Tool, "code", out.Code, "err", events.LogText(err))
		}
		return value, nil
	}
	return nil, nil //nolint:nilnil // its value is null
}

// call calls the tool of a variable; it is retried as its binding allows.
func (r *variableReader) call(ctx context.Context, c *bindings.VariableCall, values map[string]any) engine.Outcome {
	t := &turn{Turn: run.Turn{StructuredOutputReady: r.event, Binding: c.Binding}}
	if err := r.h.findTool(t); err != nil {
		return engine.Failure(c.Binding.Tool, err)
	}
	call := run.Call(c.Binding, r.event, r.event.Turn+"#"+c.Variable)
	call.Args, _ = c.Binding.Args(c.Args, r.event)
	call.Epoch, call.Effect, call.Depth, call.Trace = 1, string(bindings.EffectNone), r.depth, r.trace
	if c.Binding.AcceptsContext {
		call.Context = c.Binding.Context(r.event, values)
	}
	out := r.h.Engine.Do(ctx, engine.Invocation{Call: call, Tool: run.Tool(c.Binding, t.Tool, bindings.EffectNone, t.Version)})
	r.h.Metrics.Tool(c.Binding, &out)
	return out
}

// errUnsuccessful is the error of a tool whose result reports a failure.
var errUnsuccessful = errors.New("the result of the tool reports a failure")

// valueOf returns the value in the outcome of a call.
func valueOf(c *bindings.VariableCall, out *engine.Outcome) (any, error) {
	switch {
	case out.Err != nil:
		return nil, out.Err
	case !out.Success:
		return nil, errUnsuccessful
	case len(out.Payload) > store.InlineLimit:
		return nil, fmt.Errorf("the result has %d bytes, a variable that a tool reads may have %d: let the tool return less", len(out.Payload), store.InlineLimit)
	}
	result, err := events.Decode(out.Payload)
	if err != nil {
		return nil, err
	}
	value, ok := c.Value(result)
	if !ok {
		return nil, errors.New("the result is not of the type of the variable: let the tool return a value of the type, or change the type")
	}
	return value, nil
}

// fill stores the values. If the document has no room for them, they are null.
func (r *variableReader) fill(ctx context.Context, read map[string]any) error {
	app, chat := r.event.App, r.event.Chat
	err := r.h.Variables.Fill(ctx, app, chat, read)
	if err == nil || !store.Decided(err) || errors.Is(err, events.ErrStateCorrupt) {
		return err
	}
	r.warn("the context variables that tools have read cannot be stored; they are null", "err", events.LogText(err))
	for name := range read {
		read[name] = nil
	}
	err = r.h.Variables.Fill(ctx, app, chat, read)
	if store.Decided(err) && !errors.Is(err, events.ErrStateCorrupt) {
		return nil // there is no room for anything; what is not stored has its start value
	}
	return err
}

func (r *variableReader) warn(msg string, args ...any) {
	r.h.logThrottled(r.m, slog.LevelWarn, msg, "", append([]any{"workflow", throttle.Cut(r.event.Workflow), "chat", throttle.Cut(r.event.Chat)}, args...)...)
}

// readVariables reads the variables of the chat of a turn, unless an earlier run of its tool has.
func (t *turn) readVariables(ctx context.Context, h *Handlers) error {
	if t.Vars != nil || h.Bindings().ReadByTools(t.Workflow) == nil {
		return nil
	}
	r := variableReader{h: h, m: t.m, event: t.StructuredOutputReady, below: h.layers(&t.Turn), depth: t.Depth, trace: t.traceparent()}
	return r.readVariables(ctx)
}

// readVariables reads the variables of the chat of a message, once for each worker that handles it.
func (s *chatMessage) readVariables(h *Handlers, below variables.Layers) error {
	if s.hasRead {
		return nil
	}
	r := variableReader{h: h, m: s.m, below: below, depth: inbound.Depth(s.m.Header), trace: s.record.Meta.Trace, event: &events.StructuredOutputReady{
		TurnID:   events.TurnID{App: s.AppID, Chat: s.ChatID, Run: s.RunID, Turn: s.MessageID},
		Workflow: s.WorkflowName, Agent: s.Agent, UserID: s.UserID, TurnSequence: s.TurnSequence,
	}}
	err := r.readVariables(s.m.tools)
	s.hasRead = err == nil
	return err
}
