package program

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
)

// ErrSeveralTools is in the error of [Select] if several tools would run the data.
var ErrSeveralTools = errors.New("several tools run programs of this form")

// Select finds the tool that runs a program: by its name, or if tool is "" the only one of the workflow that runs data
// of this form. The agent's own tool comes before others, and automatic ones before those with auto: false. The agent may
// be "".
func Select(set *bindings.Set, workflow, agent, tool string, data any) (*bindings.Binding, error) {
	if tool != "" {
		return named(set, workflow, agent, tool)
	}
	if set.WorkflowDigest(workflow) == "" {
		_, err := set.ResolvePlan(workflow, agent)
		return nil, err
	}
	kind := kindOfData(data)
	automatic, manual := candidates(set, workflow, agent, kind)
	own := slices.DeleteFunc(slices.Clone(automatic), func(b *bindings.Binding) bool { return b.Agent != events.Name(agent) })
	for _, some := range [][]*bindings.Binding{own, automatic, manual} {
		switch len(some) {
		case 0:
		case 1:
			return some[0], nil
		default:
			return nil, several(workflow, some)
		}
	}
	what := "that runs programs"
	if kind != "" {
		what = "of kind " + string(kind)
	}
	return nil, &events.Error{Code: events.CodeUnknownTool, Msg: fmt.Sprintf("workflow %q has no tool %s: add one to its oneturn.yaml", workflow, what)}
}

func named(set *bindings.Set, workflow, agent, tool string) (*bindings.Binding, error) {
	if b := set.Bound(workflow, agent, tool); b != nil && b.Program != nil {
		return b, nil
	}
	b, err := set.Tool(workflow, tool)
	if err != nil {
		return nil, fmt.Errorf("find tool %q: %w", tool, err)
	}
	return nil, &events.Error{Code: events.CodeUnknownTool, Msg: fmt.Sprintf("tool %q is of kind %s and runs no programs: name a tool of kind plan or orchestrate", b.Tool, b.Kind)}
}

// candidates returns the tools of a workflow that run programs of a kind, or of any if it is "": those that are called
// for turns of an agent, and those with auto: false, which run plans of producers and steps.
func candidates(set *bindings.Set, workflow, agent string, kind bindings.Kind) (automatic, manual []*bindings.Binding) {
	bound := set.Bindings()
	for _, t := range set.Tools(workflow) {
		if t.Program == nil || kind != "" && t.Kind != kind {
			continue
		}
		if b := set.Bound(workflow, agent, t.Tool); slices.Contains(bound, b) {
			automatic = append(automatic, b)
		} else {
			manual = append(manual, b)
		}
	}
	return automatic, manual
}

func several(workflow string, tools []*bindings.Binding) error {
	names := make([]string, len(tools))
	for i, b := range tools {
		if names[i] = b.Tool; b.Agent != "" {
			names[i] += " of agent " + b.Agent
		}
	}
	return &events.Error{Code: events.CodeUnknownTool, Err: ErrSeveralTools, Msg: fmt.Sprintf("workflow %q has several tools for it (%s)", workflow, strings.Join(names, ", "))}
}

// kindOfData returns which kind of tool data is for: an orchestration has steps, or settings of a request; a plan a type
// or calls. What has neither is for either: "".
func kindOfData(data any) bindings.Kind {
	m, _ := data.(map[string]any)
	plan, _ := m["plan"].(map[string]any)
	for _, v := range []any{m["bindings"], m["timeout_ms"], m["max_parallel"], m["steps"], plan["steps"]} {
		if v != nil {
			return bindings.KindOrchestrate
		}
	}
	for _, v := range []any{m["type"], m["calls"], plan["type"], plan["calls"]} {
		if v != nil {
			return bindings.KindPlan
		}
	}
	return ""
}
