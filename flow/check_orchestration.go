package flow

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// checkOrchestration checks the references and literal arguments of all steps. A reference sees the
// bindings and the results of earlier steps, but not the results of its siblings in a group.
func (c *compiler) checkOrchestration(p *Program, s source) {
	known := names{results: map[string]result{}, bindings: p.Bindings}
	for i := range p.Steps {
		step := &p.Steps[i]
		visible := known
		visible.group = step.Bindings
		for j := range step.Calls {
			u := agentUses{
				c: c, call: &step.Calls[j], names: visible, needed: map[string]bool{}, program: p, at: i,
				s: source{path: s.path, order: s.at(i), depth: s.depth},
			}
			u.run()
		}
		known.add(step)
	}
}

// add makes the results of a step known to later ones.
func (n names) add(step *Step) {
	for i := range step.Calls {
		if call := &step.Calls[i]; call.Key != "" {
			n.results[call.Key] = result{calls: []*Call{call}}
		}
	}
	if step.Group && step.Key != "" {
		r := result{group: step.Merge == MergeCollect}
		for i := range step.Calls {
			r.calls = append(r.calls, &step.Calls[i])
		}
		n.results[step.Key] = r
	}
}

// childKey is the name of a call's output in the value of its group.
func childKey(call *Call, i int) string {
	if call.Key != "" {
		return call.Key
	}
	return strconv.Itoa(i)
}

// agentUses checks what one call of an orchestration refers to.
type agentUses struct {
	c       *compiler
	program *Program
	at      int // the step of the call
	call    *Call
	names   names
	s       source
	needed  map[string]bool // ids of calls
}

func (u *agentUses) run() {
	tool, ok := u.c.tools.Find(u.call.Tool)
	uses := u.c.collect(u.s, u.call, tool.Program, "/steps", templateReferences)
	for _, use := range uses {
		u.uses(use)
	}
	u.call.Needs = []string{}
	for _, call := range u.program.Calls() {
		if u.needed[call.ID] {
			u.call.Needs = append(u.call.Needs, call.ID)
		}
	}
	if !ok {
		return
	}
	if tool.Input != nil {
		unchecked := dynamic(uses)
		for name := range u.call.wrong {
			unchecked[name] = true
		}
		for _, v := range u.c.checkLiterals(tool.Input, u.call.Arguments, unchecked) {
			u.c.addf(u.s.order, u.place(v.Path), RuleInvalidArguments, "step %s, agent %s: %s", u.call.ID, tool.Name, v.String())
		}
	}
	if tool.Program != "" {
		u.c.nested(&tool, u.call.Arguments, source{path: u.call.path + "/with/plan", order: u.s.order, depth: u.s.depth + 1})
	}
}

// place is the path of an argument in the plan, from its path among the arguments.
func (u *agentUses) place(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if key, ok := u.call.direct[name]; ok {
		return u.call.path + "/" + key + strings.TrimPrefix(path, "/"+name)
	}
	if _, given := u.call.Arguments[name]; !given && name == "prompt" { // where it is usually given
		return u.call.path + path
	}
	return u.call.path + "/with" + path
}

// templateReferences returns what a text consists of and how many references it has. A text that
// cannot be read counts as one.
func templateReferences(text string, most int) (template, int) {
	if !strings.Contains(text, "{{") {
		return nil, 0
	}
	t, err := parseTemplate(text, max(0, most))
	switch {
	case errors.Is(err, errTooMany):
		return nil, max(0, most) + 1
	case err != nil:
		return nil, 1
	default:
		return t, t.references()
	}
}

// uses checks the references of a text.
func (u *agentUses) uses(use use) {
	if u.c.full() {
		return
	}
	at := u.place(pointerOf("", use.path))
	if use.template == nil {
		u.c.addf(u.s.order, at, RuleReference, "step %s: %q has braces that are not a reference: write {{ result.<key>.<field> }} or {{ bindings.<name> }}, "+
			"and \\{{ for braces that are text", u.call.ID, clip(use.text))
		return
	}
	_, whole := use.template.whole()
	for _, f := range use.template {
		if f.path == nil || u.c.full() {
			continue
		}
		if source := u.check(f.path, at); whole {
			u.compareTypes(use, source, at)
		}
	}
}

// compareTypes refuses a reference that is the whole argument, and so keeps its type, if that type never fits.
func (u *agentUses) compareTypes(use use, source typeSet, at string) {
	tool, _ := u.c.tools.Find(u.call.Tool)
	target := u.c.argumentTypes(&tool, use.path)
	if source&target != 0 || source == 0 || target == 0 {
		return
	}
	fix := ""
	if target&typeString != 0 {
		fix = ". A reference that is the whole text keeps its type; with text around it, as in \"Value: {{ … }}\", it becomes text"
	}
	u.c.addf(u.s.order, at, RuleTypeMismatch, "step %s: %q is %s, and argument %s of agent %s has to be %s%s", u.call.ID, clip(use.text),
		strings.Join(source.names(), " or "), joinPath(use.path), tool.Name, strings.Join(target.names(), " or "), fix)
}

// check checks one reference: its name has to be known, its fields to be declared where the agent
// declares an output. It returns the types that the value may have, 0 if they are not known.
func (u *agentUses) check(path []string, at string) typeSet {
	name, isResult, rest, ok := u.names.find(path)
	if !ok {
		u.c.addf(u.s.order, at, RuleReference, "step %s: %q %s", u.call.ID, clip(strings.Join(path, ".")), u.whyUnknown(path))
		return 0
	}
	if !isResult {
		return 0
	}
	r := u.names.results[name]
	calls := r.calls
	for _, call := range calls {
		u.needed[call.ID] = true
	}
	if r.group && len(rest) > 0 {
		i := slices.IndexFunc(calls, func(call *Call) bool { return childKey(call, slices.Index(calls, call)) == rest[0] })
		if i < 0 {
			var keys []string
			for i, call := range calls {
				keys = append(keys, childKey(call, i))
			}
			u.c.addf(u.s.order, at, RuleReference, "step %s: group %s has no output %q; it has %s.%s",
				u.call.ID, clip(name), clip(rest[0]), listed(keys), u.c.closest(rest[0], keys))
			return 0
		}
		calls, rest = calls[i:i+1], rest[1:]
	}
	if r.group && len(rest) == 0 {
		return typeObject
	}
	var known fields
	var types typeSet
	possible, whole := false, len(rest)
	for _, call := range calls { // of a race any may be the winner
		n, at, of := u.undeclared(call, rest)
		if types |= of; n == 0 {
			possible = true
		} else if !possible {
			rest, known = rest[:n], at
		}
	}
	switch {
	case possible && len(rest) < whole: // only a part of the path was looked at
		return 0
	case possible:
		return types
	}
	u.c.addf(u.s.order, at, RuleReference, "step %s: the output of agent %s has no field %s; it has %s.%s",
		u.call.ID, calls[0].Tool, clip(strings.Join(rest, ".")), known, u.c.closestField(rest[len(rest)-1], known.names))
	return 0
}

// undeclared returns the length of the part of a path that the output of a call does not declare, and
// what it declares instead; 0 if the path is possible, with the types of the values there.
func (u *agentUses) undeclared(call *Call, path []string) (n int, known fields, types typeSet) {
	tool, ok := u.c.tools.Find(call.Tool)
	if !ok || tool.Output == nil {
		return 0, fields{}, anyType
	}
	look, at := tool.Output.look(&u.c.budgets)
	for i, segment := range path {
		below, d := look.field(at, segment)
		switch d {
		case open:
			return 0, fields{}, anyType
		case undeclared:
			known = u.c.fieldsAt(path[:i], look, at)
			known.array = isArray(look.types(at))
			return i + 1, known, 0
		case declared:
			at = below
		}
	}
	return 0, fields{}, look.types(at)
}
