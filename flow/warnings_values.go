package flow

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
)

// Texts that look like references and are none, in a plan and in an orchestration.
var (
	likePlanReference  = regexp.MustCompile(`^\$\{?[0-9]+(\}|$|\.[A-Za-z_])|\$\{?[0-9]+\.output|\{\{.*\}\}`)
	likeAgentReference = regexp.MustCompile(`\$\{?[0-9]+\.output|\$\{[A-Za-z_.]+\}|\$\{\{|(^|[^{])\{(result|bindings)(\.[A-Za-z0-9_-]+)+\}`)
)

// arguments searches the arguments of a call for texts that look like references, but for a program that one of them
// contains: it has references of its kind.
func (w *warnings) arguments(arguments map[string]any, path string) {
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if value := arguments[name]; name != "plan" {
			w.text(value, pointer(path, name))
		}
	}
}

// text searches a value for texts.
func (w *warnings) text(v any, path string) {
	if w.c.full() || len(path) > maxPointer {
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

// undeclared warns of arguments, and of fields within them, that a tool with declared arguments does not declare.
func (w *warnings) undeclared(tool *Tool, arguments map[string]any, place func(argument string) string) {
	if tool.Arguments == nil {
		return
	}
	look, at := tool.Arguments.look(&w.c.budgets)
	u := &undeclaredFields{w: w, tool: tool, look: look}
	u.fields(at, arguments, nil, place)
}

type undeclaredFields struct {
	w    *warnings
	tool *Tool
	look *look
}

func (u *undeclaredFields) fields(at place, object map[string]any, path []string, place func(key string) string) {
	if u.look.types(at)&typeObject == 0 {
		return // an error
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if u.w.c.full() {
			return
		}
		below, d := u.look.field(at, key)
		switch {
		case u.look.exhausted():
			return
		case d == declared:
			u.value(below, object[key], append(slices.Clone(path), key), place(key))
		case d == undeclared:
			known := u.w.c.fieldsAt(path, u.look, at)
			if len(known.names) > 0 && !respelled(at, key, known.names) {
				u.report(key, path, known, place(key))
			}
		}
	}
}

func (u *undeclaredFields) report(key string, path []string, known fields, at string) {
	what := "argument"
	if len(path) > 0 {
		what = "a field of argument " + clip(strings.Join(path, "."))
	}
	u.w.addf(at, ruleUndeclared, "tool %s does not declare %s %q; it declares %s.%s", u.tool.Name, what, clip(key), known, u.w.c.closest(key, known.names))
}

func (u *undeclaredFields) value(at place, v any, path []string, to string) {
	if len(to) > maxPointer {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		u.fields(at, v, path, func(key string) string { return pointer(to, key) })
	case []any:
		for i := range v {
			index := strconv.Itoa(i)
			if below, d := u.look.field(at, index); d == declared {
				u.value(below, v[i], append(slices.Clone(path), index), pointerIndex(to, i))
			}
		}
	}
}

// respelled reports whether a key is another spelling of a declared name, which is taken for that name unless the schema
// allows no other names.
func respelled(at place, key string, known []string) bool {
	for _, alternative := range at {
		for _, node := range alternative {
			if m, ok := node.(map[string]any); ok && m["additionalProperties"] == false {
				return false
			}
		}
	}
	plain := model.Plain(key)
	return slices.ContainsFunc(known, func(name string) bool { return model.Plain(name) == plain })
}
