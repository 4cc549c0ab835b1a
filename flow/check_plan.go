package flow

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
)

// planUses checks what one call of a plan refers to.
type planUses struct {
	c      *compiler
	calls  []planCall
	i      int // the call
	s      source
	needed map[int]bool // calls that it refers to
}

// planReferences returns 1 if a text is a reference.
func planReferences(text string, _ int) (template, int) {
	if isReference(text) && !isEscaped(text) {
		return nil, 1
	}
	return nil, 0
}

// check checks one reference. Of several problems the first in the order of the checks is reported.
func (u *planUses) check(text string, path []segment) {
	ref, err := parseReference(text)
	switch {
	case err != nil:
		u.reportf(text, path, UseError{Type: RuleSyntax}, "%q is not a reference: write $<number of an earlier call>.output.<field>", clip(text))
		return
	case ref.call == u.i:
		u.reportf(text, path, UseError{Type: RuleSelfReference}, "%s refers to the call that it is an argument of", clip(text))
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
			"%s refers to tool %s, which declares no output schema (declare output in the manifest)", clip(text), from.name)
		return
	}
	u.needed[ref.call] = true
	look, at := from.tool.Output.look(&u.c.budgets)
	for n, segment := range ref.path {
		below, d := look.field(at, segment)
		if d == open && (n > 0 || look.exhausted()) {
			return
		}
		if d != declared {
			known := u.c.fieldsAt(ref.path[:n], look, at)
			if segment == "" {
				u.reportf(text, path, UseError{Type: RuleFieldNotFound, ToolName: from.name, Field: clip(strings.Join(ref.path[:n+1], ".")), AvailableFields: known.available()},
					"%s has an empty name between two dots or at its end; tool %s has %s", clip(text), from.name, known)
				return
			}
			known.array = isArray(look.types(at))
			field := clip(strings.Join(ref.path[:n+1], "."))
			u.reportf(text, path, UseError{Type: RuleFieldNotFound, ToolName: from.name, Field: field, AvailableFields: known.available()},
				"%s refers to field %s, which tool %s does not have; it has %s.%s",
				clip(text), field, from.name, known, u.c.closestField(segment, known.names))
			return
		}
		at = below
	}
	u.compareTypes(text, path, ref, from, look.types(at))
}

// compareTypes refuses a value that can never be what the argument has to be. What may fit is
// checked when the value exists.
func (u *planUses) compareTypes(text string, path []segment, ref reference, from *planCall, source typeSet) {
	to := &u.calls[u.i]
	target := u.c.argumentTypes(&to.tool, path)
	if source&target != 0 || source == 0 || target == 0 {
		return
	}
	u.reportf(text, path, UseError{
		Type: RuleTypeMismatch, ToolName: from.name, Field: clip(strings.Join(ref.path, ".")),
		SourceTypes: source.names(), TargetTypes: target.names(),
	}, "%s is %s, and argument %s of tool %s has to be %s", clip(text), strings.Join(source.names(), " or "),
		joinPath(path), to.name, strings.Join(target.names(), " or "))
}

// argumentTypes returns the types that an argument of a tool, or a value within one, may have; 0 if that is not declared.
func (c *compiler) argumentTypes(tool *Tool, path []segment) typeSet {
	if tool.Arguments == nil {
		return 0
	}
	look, at := tool.Arguments.look(&c.budgets)
	for _, segment := range path {
		below, d := look.field(at, segment.String())
		if d != declared {
			return 0
		}
		at = below
	}
	return look.types(at)
}

// literals checks the arguments without references as the tool itself will. An argument with a
// reference is checked when its value exists.
func (u *planUses) literals(dynamic map[string]bool) {
	call := &u.calls[u.i]
	if call.tool.Input == nil {
		return
	}
	hint := ""
	if call.alias != "" {
		hint = fmt.Sprintf(" The call has no arguments: its key %q is ignored; did you mean arguments?", call.alias)
	}
	for _, v := range u.c.checkLiterals(call.tool.Input, call.arguments, dynamic) {
		argument := clip(strings.ReplaceAll(strings.TrimPrefix(v.Path, "/"), "/", "."))
		u.c.append(Problem{
			Use: &Use{ToolIndex: u.i, Argument: argument}, Error: &UseError{Type: RuleInvalidArguments, ToolName: call.name},
			Path: call.path + "/arguments" + v.Path, Rule: RuleInvalidArguments, order: u.s.at(u.i),
			Message: fmt.Sprintf("call %d, tool %s: %s%s", u.i, call.name, v.String(), hint),
		})
	}
}

// maxSteps bounds the checks of all literal arguments of a program. Beyond it they are checked when
// their calls start.
const maxSteps = 200_000

// checkLiterals checks arguments without those that hold references.
func (c *compiler) checkLiterals(input *model.Model, arguments map[string]any, dynamic map[string]bool) []model.Violation {
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
	violations, _ := input.ViolationsWithin(literal, &c.checks)
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

func (u *planUses) reportf(text string, path []segment, e UseError, format string, args ...any) {
	u.c.append(Problem{
		Use: &Use{ToolIndex: u.i, Argument: joinPath(path), Template: clip(text)}, Error: &e,
		Path: pointerOf(u.calls[u.i].path+"/arguments", path), Rule: e.Type, order: u.s.at(u.i),
		Message: fmt.Sprintf("call %d, argument %s: ", u.i, joinPath(path)) + fmt.Sprintf(format, args...),
	})
}

// maxFields bounds the fields that a problem lists.
const maxFields = 100

// fields are the fields that a tool declares at a place of its output.
type fields struct {
	names    []string // sorted
	complete bool
	array    bool // the place is an array
}

// isArray reports whether a value can be an array, and nothing that has names.
func isArray(t typeSet) bool { return t&typeArray != 0 && t&typeObject == 0 }

// schemaPath is a path in a schema. Names of tools would not do: a nested program may have other tools.
type schemaPath struct {
	schema *Schema
	path   string
}

// fieldsAt returns the fields at a place, which is below a path in a schema.
func (c *compiler) fieldsAt(path []string, look *look, at place) fields {
	key := schemaPath{look.schema, strings.Join(path, ".")}
	f, ok := c.fields[key]
	if !ok {
		f.names, f.complete = look.names(at)
		c.fields[key] = f
	}
	return f
}

// available is the list of fields for programs.
func (f fields) available() []string {
	available := make([]string, min(len(f.names), maxFields))
	for i := range available {
		available[i] = clip(f.names[i])
	}
	return available
}

// String lists the fields for a message.
func (f fields) String() string {
	switch {
	case !f.complete:
		return "more fields than can be listed"
	case f.array:
		return "elements, since it is an array: write the number of one"
	case len(f.names) == 0:
		return "no declared fields"
	default:
		return listed(f.names)
	}
}

// listed writes names for a message.
func listed(names []string) string {
	const most = 20
	var b strings.Builder
	for i, name := range names[:min(len(names), most)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(cut(name, maxName))
	}
	if more := len(names) - most; more > 0 {
		b.WriteString(" and " + strconv.Itoa(more) + " more")
	}
	return b.String()
}

// closestField suggests a field. An index in brackets is a frequent mistake.
func (c *compiler) closestField(segment string, names []string) string {
	if name, index, ok := strings.Cut(segment, "["); ok {
		return fmt.Sprintf(" Write an array element as %s.%s.", clip(name), clip(strings.TrimSuffix(index, "]")))
	}
	return c.closest(segment, names)
}
