package flow

import (
	"maps"
	"slices"
	"strings"
)

// names are what a reference of an orchestration can begin with: results of earlier steps and
// bindings.
type names struct {
	results  map[string]result
	group    map[string]any // bindings of the group, which hide bindings of the program
	bindings map[string]any
}

// binding returns a binding.
func (n names) binding(name string) (value any, ok bool) {
	if value, ok = n.group[name]; !ok {
		value, ok = n.bindings[name]
	}
	return value, ok
}

func (n names) isBinding(name string) bool { _, ok := n.binding(name); return ok }
func (n names) isResult(name string) bool  { _, ok := n.results[name]; return ok }

// result is what is known of a result before it exists.
type result struct {
	calls []*Call // whose outputs it is made of
	group bool    // an object with an output for each of the calls
}

// find returns what a path begins with: its name and whether it is a result, else a binding. A path
// may begin with `result` or `bindings`; without, results come before bindings. Keys may contain
// dots, so the longest key that fits counts.
func (n names) find(path []string) (name string, isResult bool, rest []string, ok bool) {
	if len(path) > 1 {
		switch path[0] {
		case "result":
			if name, rest, ok = longest(n.isResult, path[1:]); ok {
				return name, true, rest, true
			}
		case "bindings":
			if name, rest, ok = longest(n.isBinding, path[1:]); ok {
				return name, false, rest, true
			}
		}
	}
	if name, rest, ok = longest(n.isResult, path); ok {
		return name, true, rest, true
	}
	name, rest, ok = longest(n.isBinding, path)
	return name, false, rest, ok
}

// longest returns the longest name that a path begins with.
func longest(known func(string) bool, path []string) (name string, rest []string, ok bool) {
	name = strings.Join(path, ".")
	for i := len(path); i > 0; i-- {
		if known(name) {
			return name, path[i:], true
		}
		name = name[:max(0, len(name)-len(path[i-1])-1)]
	}
	return "", nil, false
}

// maxListed bounds the bindings that are listed for a message: there may be very many of them.
const maxListed = 1000

// all returns all names, sorted, results first, for a message.
func (n names) all() []string {
	all := slices.Sorted(maps.Keys(n.results))
	if len(n.group)+len(n.bindings) > maxListed {
		return all
	}
	bindings := slices.AppendSeq(slices.Collect(maps.Keys(n.group)), maps.Keys(n.bindings))
	slices.Sort(bindings)
	for _, name := range slices.Compact(bindings) {
		all = append(all, "bindings."+name)
	}
	return all
}
