package program

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// Compiler compiles the programs of one tool in one turn.
type Compiler struct {
	Binding *bindings.Binding // of the tool; its Program is set
	Agent   string            // of the turn
	Tools   *Tools            // of its steps
	Depth   int               // of its programs: 1 (or 0) in a turn, one more for each program around it
	Limits  flow.Limits       // of the manifest; a program around it leaves fewer calls than these
}

// NewCompiler is [Catalog.Compiler] of a new catalog. Describe may be nil.
func NewCompiler(set *bindings.Set, b *bindings.Binding, agent string, depth int, describe Describe) *Compiler {
	return NewCatalog(set, describe).Compiler(b, agent, depth)
}

// LimitsOf returns the limits of the programs of a tool.
func LimitsOf(b *bindings.Binding) flow.Limits { return flow.Limits(b.Program.Limits) }

// Options returns the options for compiling: of a program that a planner has written if planned is true.
func (c *Compiler) Options(planned bool) flow.Options {
	return flow.Options{Tools: c.Tools, Limits: c.Limits, Depth: max(1, c.Depth), Planned: planned}
}

// Compile compiles the data of a turn, or the arguments of a step. Instead of a program it returns the request for
// one, if the data is a prompt that the planner has to make a program of.
//
// The data of a plan is the plan itself, {"plan": plan} or {"prompt": text}; of an orchestration its request. The
// error is a [*flow.Refused], or an [events.Error] with code guardrail: the tool is disabled, or the program is too
// deep or has too many calls only because of the programs around it.
func (c *Compiler) Compile(data any) (*flow.Program, *flow.Request, error) {
	if !c.Binding.Program.Enabled {
		return nil, nil, &events.Error{Code: events.CodeGuardrail, Msg: "tool " + c.Binding.Tool + " is disabled: its manifest has enabled: false"}
	}
	p, ask, err := c.compile(data, c.Options(false))
	if overLimit(err) && c.Depth > 1 {
		if _, _, own := c.compile(data, flow.Options{Tools: c.Tools, Limits: LimitsOf(c.Binding), Depth: 1}); !overLimit(own) {
			err = &events.Error{Code: events.CodeGuardrail, Msg: err.Error(), Err: err}
		}
	}
	return p, ask, err
}

func (c *Compiler) compile(data any, o flow.Options) (*flow.Program, *flow.Request, error) {
	if c.Binding.Kind == bindings.KindPlan {
		return c.plan(data, o)
	}
	r, err := flow.ReadRequest(data, o)
	if err != nil {
		return nil, nil, err
	}
	if r.Prompt != "" {
		return c.prompt(&r, o)
	}
	p, err := flow.CompileOrchestration(r.Plan, r, o)
	return p, nil, err
}

func (c *Compiler) plan(data any, o flow.Options) (*flow.Program, *flow.Request, error) {
	if m, ok := data.(map[string]any); ok && m["type"] == nil {
		text, _ := m["prompt"].(string)
		inner, given := m["plan"]
		switch prompted := strings.TrimSpace(text) != ""; {
		case given && prompted:
			return nil, nil, refusal(flow.KindPlan, "", "", flow.RuleOneOf, "set either plan or prompt, not both")
		case given:
			data = inner
		case prompted:
			return c.prompt(&flow.Request{Prompt: text}, o)
		}
	}
	p, err := flow.CompilePlan(data, o)
	return p, nil, err
}

// prompt admits a prompt: there is a planner, and the program would not be too deep.
func (c *Compiler) prompt(r *flow.Request, o flow.Options) (*flow.Program, *flow.Request, error) {
	kind := kindOf(c.Binding)
	switch limit := cmp.Or(c.Limits.Depth, o.Limits.WithDefaults().Depth); {
	case c.Binding.Program.Planner == "":
		return nil, nil, refusal(kind, flow.ReasonPlannerDisabled, "/prompt", flow.RuleUnsupported,
			"no planner is configured for tool "+c.Binding.Tool+": send a plan, or set planner in the manifest")
	case o.Depth > limit:
		return nil, nil, refusal(kind, "", "/prompt", flow.RuleDepth, "the program would be nested too deep")
	}
	return nil, r, nil
}

func refusal(kind flow.Kind, reason, path, rule, message string) *flow.Refused {
	return &flow.Refused{Kind: kind, Reason: reason, Problems: []flow.Problem{{Path: path, Rule: rule, Message: message}}}
}

// TooDeep reports whether programs that are nested too deep are among the reasons of a refusal.
func TooDeep(err error) bool { return hasRule(err, flow.RuleDepth) }

// overLimit reports whether programs that are nested too deep, or have too many calls, are among the reasons of a refusal.
func overLimit(err error) bool { return TooDeep(err) || hasRule(err, flow.RuleMaxItems) }

func hasRule(err error, rule string) bool {
	var refused *flow.Refused
	return errors.As(err, &refused) && slices.ContainsFunc(refused.Problems, func(p flow.Problem) bool { return p.Rule == rule })
}

// Kind returns the kind of the programs.
func (c *Compiler) Kind() flow.Kind { return kindOf(c.Binding) }

// PlannerBinding returns the agent that writes programs for prompts, nil if there is none.
func (c *Compiler) PlannerBinding() *bindings.Binding {
	return c.Tools.catalog.set.Planner(c.Binding, c.Tools.agent)
}

// ResponderBinding returns the agent that answers the user after a program, nil if there is none.
func (c *Compiler) ResponderBinding() *bindings.Binding {
	return c.Tools.catalog.set.Responder(c.Binding, c.Tools.agent)
}
