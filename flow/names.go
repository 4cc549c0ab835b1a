package flow

import "strings"

// names are what a reference of an orchestration can begin with: results of earlier steps and
// bindings.
type names struct {
	results  map[string]result
	bindings map[string]any
}

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
			if name, rest, ok = longest(n.results, path[1:]); ok {
				return name, true, rest, true
			}
		case "bindings":
			if name, rest, ok = longest(n.bindings, path[1:]); ok {
				return name, false, rest, true
			}
		}
	}
	if name, rest, ok = longest(n.results, path); ok {
		return name, true, rest, true
	}
	name, rest, ok = longest(n.bindings, path)
	return name, false, rest, ok
}

func longest[V any](known map[string]V, path []string) (name string, rest []string, ok bool) {
	for i := len(path); i > 0; i-- {
		name = strings.Join(path[:i], ".")
		if _, ok := known[name]; ok {
			return name, path[i:], true
		}
	}
	return "", nil, false
}
