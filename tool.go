package oneturn

// Tools are typed Go functions with options. NewTool turns both into what the engine runs (internal/tools) and
// what binds it to events (package bindings).

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/internal/worker"
	"github.com/oneturn/oneturn/tool"
)

// Effect is what a tool may do to the world: it decides whether the tool may be entered again after its
// worker died.
type Effect = events.Effect

// The effects of tools. Unsafe is the default, Replay the default of tools with a component.
const (
	Unsafe     = events.EffectUnsafe     // entered at most once per turn
	Replay     = events.EffectReplay     // entered again only while it waits for an answer; for tools that ask people
	Keyed      = events.EffectKeyed      // may be entered again with the same idempotency key
	Idempotent = events.EffectIdempotent // entered at least once
	ReadOnly   = events.EffectNone       // has no effect; entered at least once
)

// Tool is a Go function that workers can run. Make it with [NewTool].
type Tool struct{ tool worker.Tool }

// ToolOptions bind a tool to the output of an agent and set how it runs. The zero value leaves both to a
// oneturn.yaml with a tool of this name and `kind: go`; any option requires Workflow.
type ToolOptions struct {
	// Workflow, Agent and Model bind the tool: events that name them run it. Model "" is the name of the tool.
	Workflow string
	Agent    string
	Model    string

	// Effect of a second run of the tool. Defaults to [Unsafe], with a Component to [Replay]: set Replay for a
	// tool that asks people (package tool) without a Component.
	Effect Effect
	// Timeout of one attempt. Defaults to Config.ToolTimeout.
	Timeout time.Duration
	// MaxAttempts bounds how often a tool that fails with tool.Retryable is tried. Defaults to 1.
	MaxAttempts int
	// Schema (JSON Schema, draft 2020-12) of the input. Defaults to the schema inferred from the input type.
	Schema json.RawMessage

	// Component that frontends display for the call, and for the questions that its tool asks without a
	// Component. Defaults to none.
	Component string
	// Display is where frontends display the Component. Defaults to [tool.DisplayInline].
	Display tool.Display

	// CacheFor is how long results are reused for calls with the same arguments. The effect must be
	// [ReadOnly]. Defaults to no cache.
	CacheFor time.Duration
	// CacheScope is the group of calls that share results, as in a manifest: "user", "chat", "tenant" or "global".
	// Defaults to "chat".
	CacheScope string
	// Limits of calls and results. Defaults to none.
	Limits Limits

	// CheckCall may refuse a call before the tool is entered: it returns tool.Refuse(reason). The arguments are
	// validated and must not be changed. Defaults to none.
	CheckCall func(ctx context.Context, call tool.CallInfo, args map[string]any) error
	// CheckResult may refuse a result, which is then not used. Defaults to none.
	CheckResult func(ctx context.Context, call tool.CallInfo, result json.RawMessage) error
}

// Limits bound the calls of a tool.
type Limits struct {
	Tool   Limit // all calls of the tool
	Tenant Limit // the calls of one tenant
	// Output bounds the result, in bytes of its JSON; the call of a larger one ends as too_large. 0: no limit
	// but what the bucket for large payloads can store.
	Output int
}

// Limit bounds calls.
type Limit struct {
	Concurrency int // calls at the same time, in one worker; 0: no limit
	Rate        Rate
}

// Rate is how many calls may begin in a time, over all workers. The zero value sets no limit.
type Rate struct {
	Calls int           // that may begin in Per
	Per   time.Duration // required with Calls, for example [time.Second]
	Burst int           // how many may begin at the same time; 0: Calls
}

// NewTool makes a tool of a typed function. The structured data of the turn is checked against the JSON
// Schema of In (fields by their json tags; a field without omitempty is required), decoded into In, and Out
// becomes the payload of the response. Inside fn, package tool has the ids, the idempotency key, the context
// variables and all else that a running tool uses. [NewWorker] reports mistakes.
func NewTool[In, Out any](name string, fn func(ctx context.Context, in In) (Out, error), o ToolOptions) Tool {
	t := worker.Tool{Name: name, Invoker: tools.Func(fn)}
	input, err := tools.SchemaOf[In]()
	t.Types.Input = input
	if output, err := tools.SchemaOf[Out](); err == nil { // what only describes may be missing
		t.Types.Output = output
	}
	if reflect.ValueOf(o).IsZero() {
		return Tool{t}
	}
	t.Declared = o.declaration()
	t.Declared.Tool = name
	t.Declared.Output = t.Types.Output
	if t.Declared.Schema == nil {
		if err != nil {
			t.Err = fmt.Errorf("oneturn.NewTool(%q): the input type has no JSON Schema, set ToolOptions.Schema: %w", name, err)
		}
		t.Declared.Schema = input
	}
	return Tool{t}
}

func (o *ToolOptions) declaration() *bindings.Declaration {
	d := &bindings.Declaration{
		Workflow: o.Workflow, Agent: o.Agent, Model: o.Model, Schema: o.Schema,
		Effect: o.Effect, Timeout: o.Timeout, MaxAttempts: o.MaxAttempts, Component: o.Component, Mode: string(o.Display),
		Cache: bindings.Cache{TTL: o.CacheFor, Scope: bindings.Scope(o.CacheScope)},
		Limits: target.Limits{
			Tool: o.Limits.Tool.internal(), Tenant: o.Limits.Tenant.internal(), Output: o.Limits.Output,
		},
	}
	if check := o.CheckCall; check != nil {
		d.Guards = append(d.Guards, guards.Input(func(ctx context.Context, call *tools.Call) error {
			return check(ctx, tool.CallInfo(call.Info()), call.Args)
		}))
	}
	if check := o.CheckResult; check != nil {
		d.Guards = append(d.Guards, guards.Output(func(ctx context.Context, call *tools.Call, result json.RawMessage) error {
			return check(ctx, tool.CallInfo(call.Info()), result)
		}))
	}
	return d
}

func (l Limit) internal() target.Limit {
	return target.Limit{Concurrency: l.Concurrency, Rate: target.Rate(l.Rate)}
}
