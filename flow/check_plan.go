package flow

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
)

// planUses checks what one call of a plan refers to.
type planUses struct {
	c       *compiler
	calls   []planCall
	i       int // the call
	s       source
	needed  map[int]bool    // calls that it refers to
	dynamic map[string]bool // top-level arguments with references in them
}

// walk checks the references in a value. Keys are never references.
func (u *planUses) walk(v any, path []string) {
	switch v := v.(type) {
	case string:
		if isReference(v) && !isEscaped(v) && u.c.refer(u.s, "/calls") {
			u.dynamic[path[0]] = true
			u.check(v, path)
		}
	case []any:
		for i, item := range v {
			u.walk(item, append1(path, strconv.Itoa(i)))
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			u.walk(v[key], append1(path, key))
		}
	}
}

// check checks one reference. Of several problems the first in the order of the checks is reported.
func (u *planUses) check(text string, path []string) {
	ref, err := parseReference(text)
	switch {
	case err != nil:
		u.reportf(text, path, UseError{Type: RuleSyntax}, "%q is not a reference: write $<number of an earlier call>.output.<field>", clip(text))
		return
	case ref.call == u.i:
		u.reportf(text, path, UseError{Type: RuleSelfReference}, "%s refers to the call that it is an argument of", text)
		return
	case ref.call > u.i:
		u.reportf(text, path, UseError{Type: RuleForwardReference, ReferencedIndex: &ref.call}, "%s refers to call %d, which does not come before", clip(text), ref.call)
		return
	}
	from := &u.calls[ref.call]
	if !from.known {
		return // reported already
	}
	if from.tool.Output == nil {
		u.reportf(text, path, UseError{Type: RuleNoOutputSchema, ToolName: from.name},
			"%s refers to tool %s, which declares no output schema", clip(text), from.name)
		return
	}
	u.needed[ref.call] = true
	look, at := from.tool.Output.look(&u.c.visits)
	for n, segment := range ref.path {
		below, d := look.field(at, segment)
		if d == undeclared || d == open && n == 0 {
			names := look.names(at)
			field := clip(strings.Join(ref.path[:n+1], "."))
			u.reportf(text, path, UseError{Type: RuleFieldNotFound, ToolName: from.name, Field: field, AvailableFields: available(names)},
				"%s refers to field %s, which tool %s does not have; it has %s.%s",
				clip(text), field, from.name, listed(names), closestField(segment, names))
			return
		}
		if d == open {
			return
		}
		at = below
	}
	u.compareTypes(text, path, ref, from, look.types(at))
}

// compareTypes refuses a value that can never be what the argument has to be. What may fit is
// checked when the value exists.
func (u *planUses) compareTypes(text string, path []string, ref reference, from *planCall, source typeSet) {
	to := &u.calls[u.i]
	if to.tool.Arguments == nil {
		return
	}
	look, at := to.tool.Arguments.look(&u.c.visits)
	for _, segment := range path {
		below, d := look.field(at, segment)
		if d != declared {
			return
		}
		at = below
	}
	target := look.types(at)
	if source&target != 0 || source == 0 || target == 0 {
		return
	}
	u.reportf(text, path, UseError{
		Type: RuleTypeMismatch, ToolName: from.name, Field: clip(strings.Join(ref.path, ".")),
		SourceTypes: source.names(), TargetTypes: target.names(),
	}, "%s is %s, and argument %s of tool %s has to be %s", clip(text), strings.Join(source.names(), " or "),
		joinPath(path), to.name, strings.Join(target.names(), " or "))
}

// literals checks the arguments without references as the tool itself will. An argument with a
// reference is checked when its value exists.
func (u *planUses) literals() {
	call := &u.calls[u.i]
	if call.tool.Input == nil {
		return
	}
	for _, v := range checkLiterals(call.tool.Input, call.arguments, u.dynamic) {
		argument := strings.ReplaceAll(strings.TrimPrefix(v.Path, "/"), "/", ".")
		u.c.append(Problem{
			Use: &Use{ToolIndex: u.i, Argument: argument}, Error: &UseError{Type: RuleInvalidArguments, ToolName: call.name},
			Path: call.path + "/arguments" + v.Path, Rule: RuleInvalidArguments, order: u.s.at(u.i),
			Message: fmt.Sprintf("call %d, tool %s: %s", u.i, call.name, v.String()),
		})
	}
}

// checkLiterals checks arguments without those that hold references.
func checkLiterals(input *model.Model, arguments map[string]any, dynamic map[string]bool) []model.Violation {
	literal := arguments
	spelled := map[string]bool{}
	if len(dynamic) > 0 {
		literal = make(map[string]any, len(arguments))
		for name, value := range arguments {
			if dynamic[name] {
				spelled[model.Plain(name)] = true
			} else {
				literal[name] = value
			}
		}
	}
	_, violations := input.Check(literal)
	kept := violations[:0]
	for _, v := range violations {
		top, _, _ := strings.Cut(strings.TrimPrefix(v.Path, "/"), "/")
		// Rules about the object as a whole cannot be judged while a part of it is missing.
		if len(dynamic) > 0 && (v.Path == "" || spelled[model.Plain(top)]) {
			continue
		}
		kept = append(kept, v)
	}
	return kept
}

func (u *planUses) reportf(text string, path []string, e UseError, format string, args ...any) {
	at := u.calls[u.i].path + "/arguments"
	for _, segment := range path {
		at = pointer(at, segment)
	}
	u.c.append(Problem{
		Use: &Use{ToolIndex: u.i, Argument: joinPath(path), Template: clip(text)}, Error: &e,
		Path: at, Rule: e.Type, order: u.s.at(u.i),
		Message: fmt.Sprintf("call %d, argument %s: ", u.i, joinPath(path)) + fmt.Sprintf(format, args...),
	})
}

// maxFields bounds the fields that a problem lists.
const maxFields = 100

func available(names []string) []string {
	return append([]string{}, names[:min(len(names), maxFields)]...)
}

// listed writes names for a message.
func listed(names []string) string {
	const most = 20
	switch {
	case len(names) == 0:
		return "no declared fields"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	default:
		return strings.Join(names, ", ")
	}
}

// closestField suggests a field. An index in brackets is a frequent mistake.
func closestField(segment string, names []string) string {
	if name, index, ok := strings.Cut(segment, "["); ok {
		return fmt.Sprintf(" Write an array element as %s.%s.", clip(name), clip(strings.TrimSuffix(index, "]")))
	}
	return closest(segment, names)
}
