package bindings

import (
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// The tools of programs: [Set.ResolvePlan] finds the tool that runs a plan of a producer, [Set.StepTools] the tools
// that its steps may call, [Set.Planner] and [Set.Responder] the agents around it.

// stepTools are what steps of programs can name.
type stepTools struct {
	names    []string              // in the order of the manifests
	bindings map[string][]*Binding // by name: one for each agent and entry
	agents   map[string][]*Binding // of agents, by their ids
}

// add notes a binding for steps that name its tool. What an agent may call by itself is not a limit of steps:
// StepTools returns only what they may call.
func (s *stepTools) add(t *toolEntry, bound *Binding) {
	step := *bound
	step.Guards = t.guards
	if s.bindings == nil {
		s.bindings, s.agents = make(map[string][]*Binding), make(map[string][]*Binding)
	}
	if s.bindings[step.Tool] == nil {
		s.names = append(s.names, step.Tool)
	}
	s.bindings[step.Tool] = append(s.bindings[step.Tool], &step)
	if id := step.AgentID(); id != "" {
		s.agents[id] = append(s.agents[id], &step)
	}
}

// named returns all bindings of a name; agents are found by agent:<id> too.
func (s *stepTools) named(name string) []*Binding {
	if found := s.bindings[name]; found != nil {
		return found
	}
	if id, isAgent := strings.CutPrefix(name, "agent:"); isAgent {
		return s.agents[id]
	}
	return nil
}

// StepTools returns the tools that steps of a program may call, b being the binding of its tool and agent the agent
// of the turn: those that `uses` lists, else those that the agent may call, else all of the workflow. A tool is bound
// as for that agent, else in the only way in which it is bound. The program itself, its planner and its responder are
// steps only if `uses` lists them.
func (s *Set) StepTools(b *Binding, agent string) []*Binding {
	w := s.find(b.Workflow)
	if w == nil || b.Program == nil {
		return nil
	}
	agent = events.Name(agent)
	names, listed := b.Program.Uses, b.Program.Uses != nil
	if allowed, limited := w.allowed[agent]; !listed && limited {
		names, listed = allowed, true
	}
	if !listed {
		names = w.steps.names
	}
	var found []*Binding
	around := [2]*Binding{w.agentOf(agent, b.Program.Planner), w.agentOf(agent, b.Program.Respond)}
	for _, name := range names {
		step := w.step(b.Program.Kind, agent, name)
		if step == nil || slices.Contains(found, step) || b.Program.Uses == nil && (step.Tool == b.Tool || slices.Contains(around[:], step)) {
			continue
		}
		found = append(found, step)
	}
	return found
}

// StepTool returns the tool of a workflow that steps of programs call by its name, in a turn of agent; nil if there is none, or if it is bound in
// several ways.
func (s *Set) StepTool(workflow, agent, tool string) *Binding {
	w := s.find(workflow)
	if w == nil {
		return nil
	}
	return w.step(KindPlan, events.Name(agent), events.Name(tool))
}

// Planner returns the agent that writes programs for prompts, nil if b has none.
func (s *Set) Planner(b *Binding, agent string) *Binding {
	if w := s.find(b.Workflow); w != nil && b.Program != nil {
		return w.agentOf(events.Name(agent), b.Program.Planner)
	}
	return nil
}

// Responder returns the agent that answers from the results of a program, nil if b has none.
func (s *Set) Responder(b *Binding, agent string) *Binding {
	if w := s.find(b.Workflow); w != nil && b.Program != nil {
		return w.agentOf(events.Name(agent), b.Program.Respond)
	}
	return nil
}

func (w *workflow) agentOf(agent, name string) *Binding {
	if name == "" {
		return nil
	}
	return w.step(KindOrchestrate, agent, name)
}

// step finds what a step of a program names: nil if there is no such tool, or several.
func (w *workflow) step(kind Kind, agent, name string) *Binding {
	var all []*Binding
	if kind == KindOrchestrate {
		all = w.steps.named("agent:" + name)
	}
	if len(all) == 0 {
		all = w.steps.named(name)
	}
	own := slices.DeleteFunc(slices.Clone(all), func(b *Binding) bool { return b.Agent != agent })
	if len(own) > 0 {
		all = own
	}
	if len(all) == 0 || slices.ContainsFunc(all, func(b *Binding) bool {
		return b.at != all[0].at || b.Input == nil && b.Program == nil && b.ModelName != all[0].ModelName
	}) {
		return nil
	}
	return all[0]
}

// Callable returns all tools that turns and steps of programs may call: [Set.Bindings] and, in workflows with
// programs, the tools that only steps call.
func (s *Set) Callable() []*Binding {
	all := s.Bindings()
	for _, name := range s.names {
		w := s.workflows[name]
		if len(w.programs) == 0 {
			continue
		}
		for _, tool := range w.steps.names {
			all = append(all, w.steps.bindings[tool]...)
		}
	}
	return all
}

// ResolvePlan finds the tool for a plan that a producer sends without an agent's model: the workflow's only tool of
// kind plan, else the agent's. It may be one that is not called automatically. The error is as of [Set.Resolve].
func (s *Set) ResolvePlan(workflow, agent string) (*Binding, error) {
	w := s.find(workflow)
	if w == nil {
		return nil, s.unknown(workflow)
	}
	var plans, own, why []string
	for _, name := range w.programs {
		switch found := w.tools[name]; {
		case found.binding == nil:
			why = append(why, found.why)
		case found.binding.Kind == KindPlan:
			plans = append(plans, name)
			if b := s.Bound(w.name, agent, name); b != nil && b.Agent == events.Name(agent) {
				own = append(own, name)
			}
		}
	}
	switch {
	case len(plans) == 1:
		return s.Bound(w.name, agent, plans[0]), nil
	case len(own) == 1:
		return s.Bound(w.name, agent, own[0]), nil
	case len(plans) > 1:
		why = []string{"it has several tools of kind plan (" + listed(plans) + "): name the agent of one"}
	case len(why) == 0:
		why = []string{"no tool has kind: plan"}
	}
	what := " runs no plan"
	if agent != "" {
		what += " of agent " + quoted(agent)
	}
	return nil, unresolved("workflow "+quoted(w.name)+what, strings.Join(why, "; "), ErrNoBinding)
}
