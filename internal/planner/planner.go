package planner

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/oneturn/oneturn/flow"
)

// Planner asks an agent for a program.
type Planner struct {
	Kind flow.Kind
	// Input is what the user asks for (Prompt). For an orchestration it also has the bindings that the program can read,
	// and limits.
	Input   flow.Request
	Tools   []Tool       // that the program may call; Options.Tools has the same
	Options flow.Options // for compiling; Planned is set
	// Responds means that a responder follows. It explains a refused plan, which then is not asked for again. An orchestration is.
	Responds bool
}

// Ask asks the agent and returns its result: a text as a JSON string, or a JSON object. Its errors end the planning.
type Ask func(ctx context.Context, r Request) (json.RawMessage, error)

// Planned is the end of a planning that the agent has replied to.
type Planned struct {
	Program *flow.Program // nil if it is refused
	// Reply is the reply that counts, bounded, to be stored before the program is used: [Planner.Compile] of it gives the
	// same program, or the same refusal.
	Reply json.RawMessage
	Asked int // how often the agent was asked
}

// Plan asks for a program, at most twice. A reply that is not one JSON object is always asked for again. One that does
// not compile is as well, unless it is a plan and a responder follows: then the responder explains the refusal to the user,
// and the turn needs two calls of models, as after any plan.
//
// The error is a [*flow.Refused] for a reply that is refused, an [events.Error] with code too_large if there is more
// to ask than fits, or else the error of ask. With a refusal, the reply is set.
func (p *Planner) Plan(ctx context.Context, ask Ask) (Planned, error) {
	r, err := p.Request()
	if err != nil {
		return Planned{}, err
	}
	for {
		reply, err := ask(ctx, r)
		if err != nil {
			return Planned{Asked: r.Round}, err
		}
		program, err := p.Compile(reply)
		if err == nil || r.Round == 2 || !p.repairs(err) {
			return Planned{Program: program, Reply: stored(reply), Asked: r.Round}, err
		}
		r = r.again(replyText(reply), feedback(err))
	}
}

// Request returns the first request.
func (p *Planner) Request() (Request, error) {
	data, text, err := p.data()
	if err != nil {
		return Request{}, err
	}
	system := planInstructions
	if p.Kind == flow.KindOrchestration {
		system = orchestrationInstructions
	}
	r := Request{Round: 1, Data: data}
	r.System, r.Messages, r.Schema, r.Temperature = system, user(text), p.replySchema(), zero()
	return r, nil
}

// Read returns the plan that a reply contains: the object itself, or its key plan, as in the data of a turn. Bindings next to that key
// are bindings of the plan.
func (p *Planner) Read(reply json.RawMessage) (map[string]any, error) {
	object, err := ReadReply(reply)
	if err != nil {
		return nil, err
	}
	plan := flow.PlanOf(p.Kind, object)
	outer, ok := object["bindings"].(map[string]any)
	if own, inner := object["steps"], plan["bindings"]; !ok || own != nil || inner != nil || p.Kind != flow.KindOrchestration {
		return plan, nil
	}
	plan = maps.Clone(plan)
	plan["bindings"] = outer
	return plan, nil
}

// Compile compiles a reply. The error is a [*flow.Refused] with a reason; what is read and what is refused depends on
// the reply alone.
func (p *Planner) Compile(reply json.RawMessage) (*flow.Program, error) {
	plan, err := p.Read(reply)
	if err != nil {
		return nil, p.malformed(reply, err)
	}
	o := p.Options
	o.Planned = true
	var program *flow.Program
	if p.Kind == flow.KindOrchestration {
		program, err = flow.CompileOrchestration(plan, p.Input, o)
	} else {
		program, err = flow.CompilePlan(plan, o)
	}
	var refused *flow.Refused
	if errors.As(err, &refused) && refused.Reason == "" {
		refused.Reason = flow.ReasonPlannerInvalid
	}
	return program, err
}

// repairs reports whether a refused reply is asked for again.
func (p *Planner) repairs(err error) bool {
	var refused *flow.Refused
	if !errors.As(err, &refused) {
		return false
	}
	return p.Kind == flow.KindOrchestration || !p.Responds || !readable(refused)
}
