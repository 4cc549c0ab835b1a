package flow

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/internal/nearest"
)

// maxReferences bounds the references of a program, including its nested programs.
const maxReferences = 2000

// maxGuesses bounds the steps of comparing names, which take a few nanoseconds each.
const maxGuesses = 2_000_000

// compiler is the state of a compilation: of a program and the programs nested in it.
type compiler struct {
	problems
	tools      Tools
	limits     Limits
	planned    bool
	calls      int
	references int
	budgets    budgets               // of walks over schemas
	checks     int                   // steps of checks of literal arguments
	guesses    int                   // steps of comparing names that suggestions may still cost
	fields     map[schemaPath]fields // that were listed before
}

func newCompiler(o Options) *compiler {
	return &compiler{tools: o.Tools, limits: o.Limits.WithDefaults(), planned: o.Planned, budgets: budgets{visits: maxVisits, names: maxNames}, guesses: maxGuesses, checks: maxSteps, fields: map[schemaPath]fields{}}
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
		c.addf(s.order, s.path+list, RuleMaxItems, "the program has %d calls, nested ones included; the limit is %d", c.calls, c.limits.Calls)
	default:
		return true
	}
	return false
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

// closest returns ` Did you mean "…"?`, or "" if no name is close to word. What suggestions cost is
// bounded: a program that has many mistakes gets the first ones only.
func (c *compiler) closest(word string, names []string) string {
	if near := c.nearest(word, names); near != "" {
		return " Did you mean " + strconv.Quote(near) + "?"
	}
	return ""
}

// nearest returns the name that is close to word, "" if none is.
func (c *compiler) nearest(word string, names []string) string {
	edits := max(1, len(word)/3)
	var similar []string
	for _, name := range names {
		if n := len(name); n <= len(word)+edits && n+edits >= len(word) {
			similar = append(similar, name)
			c.guesses -= len(word) * n
		}
		if c.guesses < 0 {
			return ""
		}
	}
	return nearest.Of(word, similar, nearest.Rule{Edits: func(_, _ string) int { return edits }})
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
