package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// MaxProblems is how many problems are reported of one program at most.
const MaxProblems = 100

// Problem is one reason why a program is not run. Path, Rule and Message are always set; the rest is
// the form in which plans report what is wrong with a call.
type Problem struct {
	*Use
	Error   *UseError `json:"error,omitempty"`
	Path    string    `json:"path"` // JSON pointer into the plan, cut at 1 KiB
	Rule    string    `json:"rule"` // the kind of problem, stable
	Message string    `json:"message"`

	order int
}

// maxMessage bounds a message, in bytes.
const maxMessage = 4096

// Use is where a plan uses a tool, an argument or a reference.
type Use struct {
	ToolIndex int    `json:"tool_index"` // number of the call, from 0
	Argument  string `json:"argument"`   // names and array indexes with dots between them; "" is the call
	Template  string `json:"template"`   // the reference; "" if the problem is not a reference
}

// UseError is what is wrong with a [Use].
type UseError struct {
	Type            string   `json:"type"` // the rule of the problem
	ToolName        string   `json:"tool_name,omitempty"`
	Field           string   `json:"field,omitempty"`
	AvailableFields []string `json:"available_fields,omitzero"` // sorted; not nil for field_not_found
	ReferencedIndex *int     `json:"referenced_index,omitempty"`
	SourceTypes     []string `json:"source_types,omitempty"`
	TargetTypes     []string `json:"target_types,omitempty"`
}

// Rules of problems, in addition to the rules of package model.
const (
	RuleSyntax           = "invalid_template_syntax" // meant as a reference, but not one
	RuleSelfReference    = "self_reference"          // a call uses its own output
	RuleForwardReference = "forward_reference"       // a call uses the output of a later one
	RuleNoOutputSchema   = "no_output_schema"        // the referenced tool declares no output
	RuleFieldNotFound    = "field_not_found"         // the referenced tool declares no such field
	RuleTypeMismatch     = "type_mismatch"           // the referenced value never fits the argument
	RuleUnknownTool      = "unknown_tool"            // not a tool that the program may call
	RuleInvalidArguments = "invalid_arguments"       // a literal argument does not fit its tool
	RuleReference        = "reference"               // a reference of an orchestration that leads nowhere
	RuleDuplicate        = "duplicate"               // an id or key that another step has
	RuleConflict         = "conflict"                // two things that exclude each other
	RuleUnknown          = "unknown"                 // not an agent that the program may call
	RuleDepth            = "depth"                   // programs nested too deep
	RuleMaxItems         = "maxItems"                // more calls or steps than the limit
	RuleOneOf            = "oneOf"                   // exactly one of two keys has to be there
	RuleUnsupported      = "unsupported"             // a key that has no function here
)

// Reasons of a refusal beyond its problems.
const (
	ReasonPlannerInvalid   = "planner_invalid"   // the planner's reply is not a valid program
	ReasonPlannerDisabled  = "planner_disabled"  // a prompt where no planner is configured
	ReasonPlannerRecursion = "planner_recursion" // a planned program wants to be planned again
)

// Refused is why a program is not run: everything that is wrong with it.
type Refused struct { //nolint:errname // it is a result before it is an error
	Kind     Kind
	Problems []Problem // at least one, in program order, at most MaxProblems
	Reason   string    // one of the reasons, or ""
	tools    []string  // names for feedback
}

// Error returns the first problem and how many more there are.
func (r *Refused) Error() string {
	first, more := &r.Problems[0], ""
	if n := len(r.Problems); n > 1 {
		more = fmt.Sprintf("and %d more", n-1)
	}
	if where := first.where(); where != "" {
		more = strings.TrimSuffix(where+", "+more, ", ")
	}
	if more == "" {
		return first.Message
	}
	return fmt.Sprintf("%s (%s)", strings.TrimSuffix(first.Message, "."), more)
}

// where returns the place of a problem whose message does not name its call, "" for one at the root of the program.
func (p *Problem) where() string {
	if p.Use != nil || strings.Count(p.Path, "/") < 2 {
		return ""
	}
	return "at " + cut(p.Path, maxPlace)
}

// maxPlace bounds a path in a text, in bytes.
const maxPlace = 200

// Unwrap returns the error as an [events.Error] with code validation_failed.
func (r *Refused) Unwrap() error {
	return &events.Error{Code: events.CodeValidationFailed, Msg: r.Error()}
}

// problems collects what is wrong with a program.
type problems struct {
	list   []Problem
	reason string
}

// addf appends a problem without a [Use]. The order is the number of the step or call.
func (p *problems) addf(order int, path, rule, format string, args ...any) {
	if p.full() {
		return
	}
	p.append(Problem{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...), order: order})
}

func (p *problems) append(problem Problem) {
	if p.full() {
		return
	}
	problem.Path, problem.Message = cut(problem.Path, maxPointer), cut(problem.Message, maxMessage)
	p.list = append(p.list, problem)
}

// full reports whether further problems are not reported.
func (p *problems) full() bool { return len(p.list) >= MaxProblems }

// refused returns the error of all problems, nil if there are none.
func (p *problems) refused(kind Kind, tools Tools) error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.Path, b.Path))
	})
	return &Refused{Kind: kind, Problems: p.list, Reason: p.reason, tools: tools.Names()}
}
