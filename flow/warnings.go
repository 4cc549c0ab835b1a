package flow

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// RuleLiteral is the rule of the warning about a text that looks like a reference.
const RuleLiteral = "literal"

// ruleIgnored is the rule of the warning about a key that is ignored.
const ruleIgnored = "ignored"

// Texts that look like references and are none, in a plan and in an orchestration.
var (
	likePlanReference  = regexp.MustCompile(`^\$\{?[0-9]+(\}|$|\.[A-Za-z_])|\$\{?[0-9]+\.output|\{\{.*\}\}`)
	likeAgentReference = regexp.MustCompile(`\$\{?[0-9]+\.output|\$\{[A-Za-z_.]+\}|\$\{\{|(^|[^{])\{(result|bindings)(\.[A-Za-z0-9_-]+)+\}`)
)

// Warnings returns what a program probably does not mean, at most [MaxProblems]: texts that look like references and are passed as
// texts, and keys that are ignored. They do not keep it from running. It is meant for dry runs: a worker does not need it.
func Warnings(kind Kind, plan map[string]any) []Problem {
	w := &warnings{like: likePlanReference, hint: "write $<number of an earlier call>.output.<field> as the whole text"}
	if kind == KindOrchestration {
		w.like, w.hint = likeAgentReference, "write {{ result.<key>.<field> }} or {{ bindings.<name> }}"
		w.steps(plan)
		return w.list
	}
	calls, _ := plan["calls"].([]any)
	for i := range calls {
		call, _ := calls[i].(map[string]any)
		path := pointerIndex("/calls", i)
		meant := aliasOf(call, "arguments")
		for _, key := range slices.Sorted(maps.Keys(call)) {
			switch key {
			case "tool_name", "arguments":
			case meant:
				w.addf(pointer(path, key), ruleIgnored, "the key %q is ignored; did you mean arguments?", key)
			default:
				w.addf(pointer(path, clip(key)), ruleIgnored, "the key %q is ignored: a call has tool_name and arguments", clip(key))
			}
		}
		arguments, _ := call["arguments"].(map[string]any)
		w.arguments(arguments, path+"/arguments")
	}
	return w.list
}

// aliasOf returns the key that was probably written in place of `arguments` or `tool_name`, if that is absent.
func aliasOf(m map[string]any, key string) string {
	aliases := []string{"tool", "name", "tool_id", "function", "agent_id"}
	if key == "arguments" {
		aliases = []string{"args", "argument", "params", "parameters", "input", "with"}
	}
	if _, given := m[key]; given {
		return ""
	}
	for _, alias := range aliases {
		if _, given := m[alias]; given {
			return alias
		}
	}
	return ""
}

type warnings struct {
	like *regexp.Regexp
	hint string
	list []Problem
}

func (w *warnings) addf(path, rule, format string, args ...any) {
	if len(w.list) < MaxProblems {
		w.list = append(w.list, Problem{Path: cut(path, maxPointer), Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
}

// steps searches the agents of an orchestration.
func (w *warnings) steps(plan map[string]any) {
	steps, _ := plan["steps"].([]any)
	for i := range steps {
		step, _ := steps[i].(map[string]any)
		path := pointerIndex("/steps", i)
		w.agent(step["agent"], path+"/agent")
		group, _ := step["parallel"].(map[string]any)
		children, _ := group["steps"].([]any)
		for j := range children {
			w.agent(children[j], pointerIndex(path+"/parallel/steps", j))
		}
	}
}

func (w *warnings) agent(v any, path string) {
	agent, _ := v.(map[string]any)
	w.text(agent["prompt"], path+"/prompt")
	with, _ := agent["with"].(map[string]any)
	w.arguments(with, path+"/with")
}

// arguments searches the arguments of a call, but for a program that one of them contains: it has references of its kind.
func (w *warnings) arguments(arguments map[string]any, path string) {
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if value := arguments[name]; name != "plan" {
			w.text(value, pointer(path, name))
		}
	}
}

// text searches a value for texts.
func (w *warnings) text(v any, path string) {
	if len(w.list) >= MaxProblems || len(path) > maxPointer {
		return
	}
	switch v := v.(type) {
	case string:
		text := v[:min(len(v), maxReference)]
		inPlan := w.like == likePlanReference && (isReference(v) || isEscaped(v))
		if !strings.ContainsAny(text, "${") || inPlan || !w.like.MatchString(text) {
			return
		}
		w.addf(path, RuleLiteral, "%q looks like a reference and is passed as text: %s, if it is meant as one", clip(v), w.hint)
	case []any:
		for i := range v {
			w.text(v[i], pointerIndex(path, i))
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			w.text(v[key], pointer(path, key))
		}
	}
}
