package bindings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Tools by their name, whether or not an agent calls them: for `turnctl call`, for tools that other programs list,
// and for agents that are found by agent:<id>.

// Shared returns the tools that tools.oneturn.yaml declares for all workflows, in its order. They
// have no workflow and no agent.
func (s *Set) Shared() []*Binding {
	if s.shared == nil {
		return nil
	}
	return s.shared.unbound()
}

// Tools returns the tools of a workflow in the order of its manifests, those that are not called
// automatically too. They have no agent.
func (s *Set) Tools(workflow string) []*Binding {
	if w := s.find(workflow); w != nil {
		return w.unbound()
	}
	return nil
}

// unbound lists the usable tools of a workflow.
func (w *workflow) unbound() []*Binding {
	all := make([]*Binding, 0, len(w.order))
	for i, name := range w.order {
		if bound := w.tools[name].binding; bound != nil && !slices.Contains(w.order[i+1:], name) {
			all = append(all, bound)
		}
	}
	return all
}

// Tool finds a tool by its name, whether or not an agent calls it: one of the workflow, else a
// shared one. With workflow "" it is a shared one, else one of the only workflow that has it. An
// agent is found by agent:<id> too. The binding has no agent; its model is the model of the tool's
// first agent. The error has code unknown_tool, or for an unknown workflow the code of [Set.Resolve].
func (s *Set) Tool(workflow, name string) (*Binding, error) {
	w, name := s.find(workflow), events.Name(name)
	if w == nil && workflow != "" {
		return nil, s.unknown(workflow)
	}
	if w != nil {
		if found, ok := w.tool(name); ok {
			return found.usable(name, w.name)
		}
	}
	if s.shared != nil {
		if found, ok := s.shared.workflow.tool(name); ok {
			return found.usable(name, "")
		}
	}
	if w != nil {
		return nil, unknownTool(fmt.Sprintf("workflow %s has no tool %s, and none is shared", quoted(w.name), quoted(name)), didYouMean(name, sortedSet(append(slices.Clone(w.order), s.shared.names()...))))
	}
	return s.anyTool(name)
}

// anyTool finds the tool of the only workflow that has one of this name.
func (s *Set) anyTool(name string) (*Binding, error) {
	var in, known []string
	for _, workflow := range s.names {
		w := s.workflows[workflow]
		known = append(known, w.order...)
		if _, ok := w.tool(name); ok {
			in = append(in, workflow)
		}
	}
	switch len(in) {
	case 0:
		return nil, unknownTool("no workflow has a tool "+quoted(name)+", and none is shared", didYouMean(name, sortedSet(append(known, s.shared.names()...))))
	case 1:
		found, _ := s.workflows[in[0]].tool(name)
		return found.usable(name, in[0])
	default:
		paths := make([]string, 0, len(in))
		for _, workflow := range in {
			paths = append(paths, workflow+"/"+name)
		}
		return nil, unknownTool("several workflows have a tool "+quoted(name), "name one of them: "+listed(paths))
	}
}

// tool finds a tool by its name, or an agent by its id.
func (w *workflow) tool(name string) (slot, bool) {
	if found, ok := w.tools[name]; ok {
		return found, true
	}
	id, isAgent := strings.CutPrefix(name, "agent:")
	if !isAgent {
		return slot{}, false
	}
	for _, bound := range w.unbound() {
		if agent, ok := bound.Target.(*target.Agent); ok && agent.ID == id {
			return slot{binding: bound}, true
		}
	}
	return slot{}, false
}

func (s slot) usable(name, workflow string) (*Binding, error) {
	if s.binding != nil {
		return s.binding, nil
	}
	where := "shared tool "
	if workflow != "" {
		where = "workflow " + quoted(workflow) + ": tool "
	}
	return nil, unknownTool(where+quoted(name)+" cannot be called", s.why)
}

func unknownTool(what, why string) error {
	if why != "" {
		what += ": " + why
	}
	return &events.Error{Code: events.CodeUnknownTool, Op: "find tool", Msg: what}
}
