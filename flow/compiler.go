package flow

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/internal/nearest"
)

// maxReferences bounds the references of a program, including its nested programs.
const maxReferences = 2000

// compiler is the state of a compilation: of a program and the programs nested in it.
type compiler struct {
	problems
	tools      Tools
	limits     Limits
	planned    bool
	calls      int
	references int
	visits     int // of schemas that may still be made
}

func newCompiler(o Options) *compiler {
	return &compiler{tools: o.Tools, limits: o.Limits.WithDefaults(), planned: o.Planned, visits: maxVisits}
}

// source is where a program that is being compiled comes from.
type source struct {
	path  string // JSON pointer to it
	order int    // number of the outermost step that contains it; -1 for the outermost program
	depth int
}

// at returns the number that problems of step i are sorted by.
func (s source) at(i int) int {
	if s.order >= 0 {
		return s.order
	}
	return i
}

// admit counts the calls of a program and checks the depth. It reports whether to compile the rest:
// what exceeds a limit is not looked at.
func (c *compiler) admit(s source, calls int, list string) bool {
	c.calls += calls
	switch {
	case s.depth > c.limits.Depth:
		c.addf(s.order, s.path, RuleDepth, "programs are nested %d deep; the limit is %d", s.depth, c.limits.Depth)
	case c.calls > c.limits.Calls:
		c.addf(s.order, s.path+list, "maxItems", "the program has %d calls, nested ones included; the limit is %d", c.calls, c.limits.Calls)
	default:
		return true
	}
	return false
}

// refer counts a reference. It reports whether to check it.
func (c *compiler) refer(s source, list string) bool {
	c.references++
	if c.references == maxReferences+1 {
		c.addf(s.order, s.path+list, "too_complex", "the program has more than %d references", maxReferences)
	}
	return c.references <= maxReferences
}

// nested compiles the program that a call contains as its literal argument `plan`, whose place is s,
// only to find what is wrong with it: it is compiled again when the call starts.
func (c *compiler) nested(tool *Tool, arguments map[string]any, s source) {
	if tool.Steps != nil {
		outer := c.tools
		c.tools = tool.Steps
		defer func() { c.tools = outer }()
	}
	plan, ok := arguments["plan"].(map[string]any)
	_, prompted := arguments["prompt"]
	switch {
	case ok && tool.Program == KindPlan:
		c.plan(plan, s)
	case ok:
		bindings, _ := arguments["bindings"].(map[string]any)
		c.steps(plan, bindings, s)
	case prompted && c.planned:
		c.addf(s.order, s.path, RuleConflict, "a program that a planner wrote cannot be planned again: set plan instead of prompt")
		c.reason = ReasonPlannerRecursion
	}
}

// belongsInside reports whether an argument of a program tool is read by the nested program alone, so
// that references in it refer to calls of the nested program.
func belongsInside(kind Kind, name string, value any) bool {
	_, isText := value.(string)
	return kind != "" && (name == "plan" && !isText || name == "prompt")
}

// closest returns ` Did you mean "…"?`, or "" if no name is close to word.
func closest(word string, names []string) string {
	near := nearest.Of(word, names, nearest.Rule{Edits: func(word, _ string) int { return max(1, len(word)/3) }})
	if near == "" {
		return ""
	}
	return " Did you mean " + strconv.Quote(near) + "?"
}

// pointer appends a name to a JSON pointer.
func pointer(path, name string) string {
	return path + "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func pointerIndex(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// typeName returns the JSON type of a value for messages.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// sortedKeys returns the keys of an object in the order in which they are checked.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
