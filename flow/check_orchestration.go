package flow

import (
	"maps"
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
		if len(step.Bindings) > 0 {
			visible.bindings = maps.Clone(p.Bindings)
			maps.Copy(visible.bindings, step.Bindings)
		}
		for j := range step.Calls {
			u := agentUses{
				c: c, call: &step.Calls[j], names: visible, needed: map[string]bool{},
				s: source{path: s.path, order: s.at(i), depth: s.depth},
			}
			u.run(p)
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
	c      *compiler
	call   *Call
	names  names
	s      source
	needed map[string]bool // ids of calls
}

func (u *agentUses) run(p *Program) {
	tool, ok := u.c.tools.Find(u.call.Tool)
	dynamic := map[string]bool{}
	for _, name := range sortedKeys(u.call.Arguments) {
		value := u.call.Arguments[name]
		if !belongsInside(tool.Program, name, value) && u.walk(value, u.call.at[name]) {
			dynamic[name] = true
		}
	}
	u.call.Needs = []string{}
	for _, call := range p.Calls() {
		if u.needed[call.ID] {
			u.call.Needs = append(u.call.Needs, call.ID)
		}
	}
	if !ok {
		return
	}
	if tool.Input != nil {
		for _, v := range checkLiterals(tool.Input, u.call.Arguments, dynamic) {
			u.c.addf(u.s.order, u.place(v.Path), RuleInvalidArguments, "step %s, agent %s: %s", u.call.ID, tool.Name, v.String())
		}
	}
	if tool.Program != "" {
		u.c.nested(&tool, u.call.Arguments, source{path: u.call.at["plan"], order: u.s.order, depth: u.s.depth + 1})
	}
}

// place is the path of an argument in the plan, from its path among the arguments.
func (u *agentUses) place(path string) string {
	name, rest, found := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	at, ok := u.call.at[name]
	if !ok {
		return u.call.at[""] + path
	}
	if found {
		at += "/" + rest
	}
	return at
}

// walk checks the references in a value and reports whether there are any. Keys are never references.
func (u *agentUses) walk(v any, path string) (found bool) {
	switch v := v.(type) {
	case string:
		t, err := parseTemplate(v)
		if err != nil {
			u.c.addf(u.s.order, path, RuleReference, "step %s: %q has braces that are not a reference: write {{ result.<key>.<field> }} or {{ bindings.<name> }}, "+
				"and \\{{ for braces that are text", u.call.ID, clip(v))
			return true
		}
		for _, f := range t {
			if f.path != nil && u.c.refer(u.s, "/steps") {
				u.check(f.path, path)
			}
		}
		return t.hasReferences()
	case []any:
		for i, item := range v {
			found = u.walk(item, pointerIndex(path, i)) || found
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			found = u.walk(v[key], pointer(path, key)) || found
		}
	}
	return found
}

// check checks one reference: its name has to be known, its fields to be declared where the agent
// declares an output.
func (u *agentUses) check(path []string, at string) {
	name, isResult, rest, ok := u.names.find(path)
	if !ok {
		all := slices.Sorted(maps.Keys(u.names.results))
		for _, b := range slices.Sorted(maps.Keys(u.names.bindings)) {
			all = append(all, "bindings."+b)
		}
		u.c.addf(u.s.order, at, RuleReference, "step %s: %q is neither the key of an earlier step nor a binding; known: %s.%s",
			u.call.ID, clip(strings.Join(path, ".")), listed(all), closest(path[len(path)-1], all))
		return
	}
	if !isResult {
		return
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
				u.call.ID, clip(name), clip(rest[0]), listed(keys), closest(rest[0], keys))
			return
		}
		calls, rest = calls[i:i+1], rest[1:]
	}
	if r.group && len(rest) == 0 {
		return
	}
	var names []string
	for _, call := range calls { // of a race any may be the winner
		undeclaredAt, known := u.undeclared(call, rest)
		if undeclaredAt == "" {
			return
		}
		rest, names = strings.Split(undeclaredAt, "."), known
	}
	u.c.addf(u.s.order, at, RuleReference, "step %s: the output of agent %s has no field %s; it has %s.%s",
		u.call.ID, calls[0].Tool, clip(strings.Join(rest, ".")), listed(names), closestField(rest[len(rest)-1], names))
}

// undeclared returns the part of a path that the output of a call does not declare, and what it
// declares instead; "" if nothing speaks against the path.
func (u *agentUses) undeclared(call *Call, path []string) (field string, known []string) {
	tool, ok := u.c.tools.Find(call.Tool)
	if !ok || tool.Output == nil {
		return "", nil
	}
	look, at := tool.Output.look(&u.c.visits)
	for n, segment := range path {
		below, d := look.field(at, segment)
		switch d {
		case open:
			return "", nil
		case undeclared:
			return strings.Join(path[:n+1], "."), look.names(at)
		case declared:
			at = below
		}
	}
	return "", nil
}
