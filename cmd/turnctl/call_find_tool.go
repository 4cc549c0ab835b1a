package main

import (
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
)

// findTool finds the tool that a command line names as TOOL or WORKFLOW/TOOL, as agent calls it if
// that is not "".
func findTool(set *bindings.Set, name, agent string) (*bindings.Binding, error) {
	workflow, tool := "", name
	before, after, whole := strings.Cut(name, "/")
	if whole && slices.Contains(set.Workflows(), before) {
		workflow, tool = before, after
	} else if agent != "" {
		workflow = ofAgent(set, name, agent)
	}
	b, err := set.Tool(workflow, tool)
	if err != nil && whole && workflow == "" { // maybe it is the workflow's name that is wrong
		_, err = set.Tool(before, after)
	}
	if err != nil {
		return nil, cli.Usagef("call: %s; turnctl tools ls lists what can be called, turnctl check lists errors", clean(messageOf(err), longestText))
	}
	if b.Kind == bindings.KindGo {
		return nil, cli.Usagef("call: tool %s is a Go function of the worker's program, and only that program can run it: "+
			"test it there (package oneturntest), or publish a turn", id(b.Tool))
	}
	if b.Program != nil {
		return nil, cli.Usagef("call: tool %s runs programs, and only a worker can run them: turnctl plan check reports what it would do", id(b.Tool))
	}
	if agent == "" {
		return b, nil
	}
	for _, bound := range set.Bindings() {
		if bound.Workflow == b.Workflow && bound.Tool == b.Tool && bound.Agent == agent {
			return bound, nil
		}
	}
	one := *b // an agent that does not call it by itself; guards may mind
	one.Agent = agent
	return &one, nil
}

// ofAgent is the only workflow in which agent calls a tool of this name, "" if there is none or
// several have one.
func ofAgent(set *bindings.Set, tool, agent string) string {
	in := ""
	for _, bound := range set.Bindings() {
		if bound.Tool != tool || bound.Agent != agent || bound.Workflow == in {
			continue
		}
		if in != "" {
			return ""
		}
		in = bound.Workflow
	}
	return in
}

// longestText bounds a message from outside in a line, in characters.
const longestText = 1000
