package run

import (
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Turns and turnctl call both map a binding to a tool and a call of the engine here, so that they run it alike.

// Tool returns the tool of a binding. Its results are cached, if the binding has a cache, when effect is none; version
// is part of their cache key.
func Tool(b *bindings.Binding, invoker tools.Invoker, effect bindings.Effect, version string) engine.Tool {
	t := engine.Tool{
		Invoker: invoker, Input: b.Input, Output: b.Output, Unplaced: b.Unplaced(), MaxAttempts: b.MaxAttempts, Timeout: b.Timeout, Limits: b.Limits, Guards: b.Guards,
	}
	if effect == bindings.EffectNone && b.Cache.TTL > 0 {
		t.Cache, t.Version, t.ID = b.Cache, b.Digest+" "+version, toolID(b)
	}
	if b.Limits != (target.Limits{}) {
		t.ID = toolID(b)
	}
	return t
}

// PromptTool is [Tool] for a call in which the product asks an agent ([tools.Call.Prompt]). The schemas of the binding do not
// apply to prompts and their answers, and an answer is never reused.
func PromptTool(b *bindings.Binding, invoker tools.Invoker) engine.Tool {
	t := Tool(b, invoker, bindings.EffectNone, "")
	t.Input, t.Output, t.Cache = nil, nil, bindings.Cache{}
	return t
}

// toolID distinguishes the tools of workflows, unless workflows share one.
func toolID(b *bindings.Binding) string {
	if b.Shared != "" {
		return b.Shared
	}
	return b.Workflow + "/" + b.Tool
}

// Call returns the call of a binding's tool by a turn, without arguments, context and what its run adds.
func Call(b *bindings.Binding, turn *events.StructuredOutputReady, callID string) *tools.Call {
	return &tools.Call{
		Turn: turn.TurnID, CallID: callID, Workflow: turn.Workflow, Agent: turn.Agent, UserID: turn.UserID, Name: b.Tool,
		IdempotencyKey: events.IdempotencyKey(turn.TurnID, callID), MapArgs: b.SignatureUnknown, Fields: b.Fields(),
	}
}

// Arguments validates what an agent has put out against its model, and maps it to the arguments of the tool. Changed
// reports whether they differ from data. With violations, there are no arguments.
func Arguments(b *bindings.Binding, turn *events.StructuredOutputReady, data any) (args map[string]any, changed bool, violations []model.Violation) {
	object, isObject := data.(map[string]any)
	switch {
	case b.Model != nil:
		if object, changed, violations = b.Model.Conform(data); len(violations) > 0 {
			return nil, false, violations
		}
	case !isObject:
		return nil, false, []model.Violation{{Path: "/", Rule: "type", Expected: "object", GotType: "not an object"}}
	}
	args, mapped := b.Args(object, turn)
	return args, changed || mapped, nil
}
