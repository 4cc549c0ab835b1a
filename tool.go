package oneturn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Effect says what may happen to a tool whose worker died: whether it may be entered again.
type Effect = bindings.Effect

// The effects of tools. Unsafe is the default, Replay that of tools with a component ([WithUI]).
const (
	Unsafe     = bindings.EffectUnsafe     // entered at most once per turn
	Replay     = bindings.EffectReplay     // entered again only while it waits for an answer; for tools that ask people
	Keyed      = bindings.EffectKeyed      // may be entered again with the same idempotency key
	Idempotent = bindings.EffectIdempotent // entered at least once
	ReadOnly   = bindings.EffectNone       // has no effect; entered at least once
)

// Tool is a Go function that workers can run. Make it with [NewTool].
type Tool struct {
	name     string
	tool     tools.Invoker
	types    bindings.Registered   // schemas of its types
	declared *bindings.Declaration // nil for a tool that a oneturn.yaml binds by name
	err      error
}

// ToolOption says something about a tool.
type ToolOption func(*Tool)

// NewTool makes a tool of a typed function. The structured data of the turn is checked
// against the JSON Schema of In (fields by their json tags; a field without omitempty is
// required), decoded into In, and Out becomes the payload of the response. Inside fn,
// package tool has the ids, the idempotency key, the context variables and all else that a
// running tool uses.
//
// With [For] the tool is bound right away; without it a oneturn.yaml binds it by name
// (`kind: go`). Mistakes are reported by [NewWorker].
func NewTool[In, Out any](name string, fn func(ctx context.Context, in In) (Out, error), options ...ToolOption) Tool {
	t := Tool{name: name, tool: tools.Func(fn)}
	input, err := tools.SchemaOf[In]()
	t.types.Input = input
	if output, err := tools.SchemaOf[Out](); err == nil { // what only describes may be missing
		t.types.Output = output
	}
	for _, option := range options {
		option(&t)
	}
	if t.declared == nil {
		return t
	}
	t.declared.Tool = name
	t.declared.Output = t.types.Output
	if t.declared.Schema == nil {
		if err != nil {
			t.err = fmt.Errorf("tool %s: no JSON Schema for its input type: %w", name, err)
		}
		t.declared.Schema = input
	}
	return t
}

// For binds the tool to the output of an agent: events that name this workflow, agent and
// model run it.
func For(workflow, agent, model string) ToolOption {
	return func(t *Tool) {
		d := t.declaration()
		d.Workflow, d.Agent, d.Model = workflow, agent, model
	}
}

// WithEffect says what a second run of the tool would do. Defaults to [Unsafe], with [WithUI] to
// [Replay]: a tool that asks people (package tool) without a component of its own says Replay here.
func WithEffect(effect Effect) ToolOption {
	return func(t *Tool) { t.declaration().Effect = effect }
}

// WithTimeout bounds one attempt of the tool. Defaults to the worker's ToolTimeout.
func WithTimeout(d time.Duration) ToolOption {
	return func(t *Tool) { t.declaration().Timeout = d }
}

// WithMaxAttempts bounds how often a tool that fails with [tools.Retryable] is tried.
// Defaults to 1.
func WithMaxAttempts(n int) ToolOption {
	return func(t *Tool) { t.declaration().MaxAttempts = n }
}

// WithSchema replaces the JSON Schema (draft 2020-12) that is inferred from the input type.
func WithSchema(schema json.RawMessage) ToolOption {
	return func(t *Tool) { t.declaration().Schema = schema }
}

// WithUI names the component that frontends show for the call, and where: inline, artifact.
func WithUI(component, mode string) ToolOption {
	return func(t *Tool) {
		d := t.declaration()
		d.Component, d.Mode = component, mode
	}
}

// WithCache keeps the results of a tool whose effect is [ReadOnly], for calls with the same
// arguments. Scope "" is one chat.
func WithCache(ttl time.Duration, scope bindings.Scope) ToolOption {
	return func(t *Tool) { t.declaration().Cache = bindings.Cache{TTL: ttl, Scope: scope} }
}

// WithLimits bounds how many calls of the tool run and begin, and how large a result may be.
func WithLimits(limits target.Limits) ToolOption {
	return func(t *Tool) { t.declaration().Limits = limits }
}

// WithGuards has guards look at each call and result of the tool, in this order.
func WithGuards(list ...guards.Guard) ToolOption {
	return func(t *Tool) {
		d := t.declaration()
		d.Guards = append(d.Guards, list...)
	}
}

func (t *Tool) declaration() *bindings.Declaration {
	if t.declared == nil {
		t.declared = &bindings.Declaration{}
	}
	return t.declared
}

// checkTools reports Go tools that can never run: registered, but bound to nothing.
func checkTools(registered []Tool, set *bindings.Set) error {
	bound := map[string]bool{}
	named := append(set.Bindings(), set.Shared()...)
	for _, workflow := range set.Workflows() {
		named = append(named, set.Tools(workflow)...)
	}
	for _, b := range named {
		if b.Kind == bindings.KindGo {
			bound[b.Tool] = true
		}
	}
	var errs []error
	for _, t := range registered {
		d := t.declared
		switch {
		case bound[t.name]:
		case d == nil:
			errs = append(errs, fmt.Errorf("tool %q is bound to nothing: add oneturn.For(workflow, agent, model), or a oneturn.yaml in Workflows with a tool of this name and `kind: go`", t.name))
		case d.Workflow == "":
			errs = append(errs, fmt.Errorf("tool %q has options but no oneturn.For(workflow, agent, model): a oneturn.yaml says these things itself", t.name))
		default:
			for _, found := range set.Diagnostics() {
				if found.Severity == bindings.SeverityError && found.Workflow == d.Workflow {
					errs = append(errs, fmt.Errorf("tool %q: %s", t.name, found))
				}
			}
		}
	}
	return errors.Join(errs...)
}
