package flow

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// RuleLiteral is the rule of the warning about a text that looks like a reference.
const RuleLiteral = "literal"

// Rules of the other warnings.
const (
	ruleIgnored    = "ignored"    // a key that is ignored
	ruleUndeclared = "undeclared" // an argument that the tool does not declare
)

// Warnings returns what the data of a turn, or of a step, probably does not mean, at most [MaxProblems]: texts that look
// like references and are passed as texts, keys that are ignored, and arguments that tools do not declare, also in
// literal nested programs. They do not keep it from running. It is meant for dry runs: a worker does not need it.
// Tools may be nil.
func Warnings(kind Kind, data map[string]any, tools Tools) []Problem {
	if tools == nil {
		tools = ToolList(nil)
	}
	w := &warnings{c: newCompiler(Options{Tools: tools})}
	w.program(kind, data, "", 1)
	return w.c.list
}

// warnings collects them in the problems of a compiler, whose budgets bound what they cost.
type warnings struct {
	c    *compiler
	like *regexp.Regexp // of the program that is searched
	hint string
}

func (w *warnings) addf(path, rule, format string, args ...any) {
	w.c.addf(0, path, rule, format, args...)
}

// program searches the data of a program, whose plan may be under its key plan.
func (w *warnings) program(kind Kind, data map[string]any, path string, depth int) {
	if depth > w.c.limits.Depth {
		return
	}
	plan, known, what := PlanOf(kind, data), []string{"prompt", "plan"}, "is ignored: the plan is under the key plan"
	inner, itself := path, !hasOwnPlan(kind, data)
	if kind == KindOrchestration {
		known = []string{"prompt", "plan", "bindings", "timeout_ms", "max_parallel"}
		what = "is not a key of a request: the call ends as validation_failed when it starts"
	}
	if !itself && (kind == KindPlan || depth > 1) { // else an unknown key of a request is an error
		w.keys(data, path, known, what)
	}
	if !itself && depth > 1 { // places in the outermost plan have no /plan, as in errors
		inner += "/plan"
	}
	if kind == KindOrchestration {
		w.like, w.hint = likeAgentReference, "write {{ result.<key>.<field> }} or {{ bindings.<name> }}"
		w.steps(plan, inner, itself, depth)
		return
	}
	w.like, w.hint = likePlanReference, "write $<number of an earlier call>.output.<field> as the whole text"
	w.plan(plan, inner, itself, depth)
}

// hasOwnPlan reports whether the plan is a part of the data.
func hasOwnPlan(kind Kind, data map[string]any) bool {
	_, given := data["plan"].(map[string]any)
	return given && data[ownKey(kind)] == nil
}

// plan searches the calls of a plan.
func (w *warnings) plan(plan map[string]any, path string, itself bool, depth int) {
	known := []string{"type", "reasoning", "calls"}
	if plan["type"] != "tool_calls" || plan["content"] != nil {
		known = append(known, "content")
	}
	if itself && plan["type"] == nil {
		known = append(known, "prompt", "plan")
	}
	w.keys(plan, path, known, "is ignored: a plan has type, reasoning and calls")
	switch {
	case plan["type"] == "direct_response" && plan["calls"] != nil:
		w.addf(path+"/calls", ruleIgnored, `calls are ignored: type is "direct_response"`)
	case plan["type"] == "tool_calls" && plan["content"] != nil:
		w.addf(path+"/content", ruleIgnored, `content is ignored: type is "tool_calls"`)
	}
	calls, _ := plan["calls"].([]any)
	for i := range calls {
		call, _ := calls[i].(map[string]any)
		at := pointerIndex(path+"/calls", i)
		w.keys(call, at, []string{"tool_name", "arguments"}, "is ignored: a call has tool_name and arguments")
		arguments, _ := call["arguments"].(map[string]any)
		w.arguments(arguments, at+"/arguments")
		name, _ := call["tool_name"].(string)
		if tool, ok := w.c.tools.Find(name); ok {
			w.called(&tool, arguments, depth, func(name string) string { return pointer(at+"/arguments", name) })
		}
	}
}

// steps searches the agents of an orchestration. Unknown keys of steps and agents are errors.
func (w *warnings) steps(plan map[string]any, path string, itself bool, depth int) {
	known := []string{"steps", "bindings", "id", "name", "description", "type", "status"}
	if itself {
		known = append(known, "prompt", "plan", "timeout_ms", "max_parallel")
	}
	w.keys(plan, path, known, "is ignored: an orchestration has steps and bindings")
	steps, _ := plan["steps"].([]any)
	for i := range steps {
		step, _ := steps[i].(map[string]any)
		at := pointerIndex(path+"/steps", i)
		w.agent(step["agent"], at+"/agent", depth)
		group, _ := step["parallel"].(map[string]any)
		children, _ := group["steps"].([]any)
		for j := range children {
			w.agent(children[j], pointerIndex(at+"/parallel/steps", j), depth)
		}
	}
}

func (w *warnings) agent(v any, path string, depth int) {
	agent, _ := v.(map[string]any)
	with, _ := agent["with"].(map[string]any)
	w.text(agent["prompt"], path+"/prompt")
	w.arguments(with, path+"/with")
	id, _ := agent["agent_id"].(string)
	tool, ok := w.c.agentTool(id)
	if !ok {
		return
	}
	arguments, direct := maps.Clone(with), map[string]string{}
	if arguments == nil {
		arguments = map[string]any{}
	}
	for _, d := range directArguments() {
		if text, ok := agent[d.key].(string); ok {
			arguments[d.argument], direct[d.argument] = text, d.key
		}
	}
	w.called(&tool, arguments, depth, func(name string) string {
		if key, ok := direct[name]; ok {
			return path + "/" + key
		}
		return pointer(path+"/with", name)
	})
}

// called searches the arguments of a call for those that its tool does not declare, and the program that they contain.
func (w *warnings) called(tool *Tool, arguments map[string]any, depth int, place func(argument string) string) {
	if tool.Program == "" {
		w.undeclared(tool, arguments, place)
		return
	}
	inner := warnings{c: w.c}
	if tool.Steps != nil {
		outer := w.c.tools
		w.c.tools = tool.Steps
		defer func() { w.c.tools = outer }()
	}
	path, _ := strings.CutSuffix(place("plan"), "/plan")
	inner.program(tool.Program, arguments, path, depth+1)
}

// keys warns of keys of an object that are not known: with the known one that was probably meant, else with
// the consequence.
func (w *warnings) keys(m map[string]any, path string, known []string, consequence string) {
	meant := map[string]string{} // by the key that was written
	for _, key := range known {
		meant[aliasOf(m, key)] = key
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch {
		case slices.Contains(known, key):
		case meant[key] != "":
			w.addf(pointer(path, clip(key)), ruleIgnored, "the key %q is ignored; did you mean %s?", clip(key), meant[key])
		default:
			w.addf(pointer(path, clip(key)), ruleIgnored, "the key %q %s", clip(key), consequence)
		}
	}
}
