package oneturn

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/internal/worker"
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
type Tool struct{ tool worker.Tool }

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
	t := Tool{tool: worker.Tool{Name: name, Invoker: tools.Func(fn)}}
	input, err := tools.SchemaOf[In]()
	t.tool.Types.Input = input
	if output, err := tools.SchemaOf[Out](); err == nil { // what only describes may be missing
		t.tool.Types.Output = output
	}
	for _, option := range options {
		option(&t)
	}
	if t.tool.Declared == nil {
		return t
	}
	t.tool.Declared.Tool = name
	t.tool.Declared.Output = t.tool.Types.Output
	if t.tool.Declared.Schema == nil {
		if err != nil {
			t.tool.Err = fmt.Errorf("tool %s: no JSON Schema for its input type: %w", name, err)
		}
		t.tool.Declared.Schema = input
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
	if t.tool.Declared == nil {
		t.tool.Declared = &bindings.Declaration{}
	}
	return t.tool.Declared
}
