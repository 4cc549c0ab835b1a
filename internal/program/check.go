package program

import (
	"errors"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// Checked is the result of a dry run. Its JSON is the output of turnctl plan check.
type Checked struct {
	Workflow string         `json:"workflow"`
	Agent    string         `json:"agent"` // of the turn
	Tool     string         `json:"tool"`  // that would run the program
	Kind     bindings.Kind  `json:"kind"`
	Runs     bool           `json:"runs"`              // nothing is wrong with the program
	Planner  string         `json:"planner,omitempty"` // the agent that has to write the program first: there are no steps yet
	Approve  bool           `json:"approve,omitempty"` // a person approves the program before its first step
	Respond  string         `json:"respond,omitempty"` // the agent that writes the answer after it
	Steps    []Step         `json:"steps"`             // of the program, in order
	Writes   int            `json:"writes"`            // records that are stored if each step runs once and asks no person
	Errors   []flow.Problem `json:"errors"`            // why it would not run
	Reason   string         `json:"reason,omitempty"`  // see [flow.Refused]
	Code     events.Code    `json:"code,omitempty"`    // of the response, if it would not run
	Message  string         `json:"message,omitempty"` // the first error
	Feedback string         `json:"feedback,omitempty"`

	// Warnings are what the program probably does not mean. It may run all the same.
	Warnings []flow.Problem `json:"warnings,omitempty"`
}

// Step is a call of a program.
type Step struct {
	Call   string        `json:"call"` // id
	Step   string        `json:"step"` // id of the step that it belongs to
	Tool   string        `json:"tool_name"`
	Effect events.Effect `json:"effect"`
	Needs  []string      `json:"needs"` // the calls whose outputs it uses
}

// Check does what a turn with this data does before its first step. Nothing is called or stored.
func Check(c *Compiler, data any) *Checked {
	b := c.Binding
	checked := &Checked{Workflow: b.Workflow, Agent: c.Agent, Tool: b.Tool, Kind: b.Kind, Steps: []Step{}, Errors: []flow.Problem{}}
	if b.Model != nil {
		conformed, _, violations := b.Model.Conform(data)
		if len(violations) > 0 {
			checked.violated(b, violations)
			return checked
		}
		data = conformed
	}
	if object, ok := data.(map[string]any); ok {
		checked.Warnings = flow.Warnings(c.Kind(), object, c.Tools)
	}
	p, ask, err := c.Compile(data)
	var refused *flow.Refused
	var failed *events.Error
	switch {
	case events.CodeOf(err) == events.CodeValidationFailed && errors.As(err, &refused):
		checked.Errors, checked.Reason, checked.Code = refused.Problems, refused.Reason, events.CodeValidationFailed
		checked.Message, checked.Feedback = refused.Error(), refused.Feedback()
	case errors.As(err, &failed):
		checked.Code, checked.Message = failed.Code, failed.Msg
		checked.Errors = []flow.Problem{{Rule: string(failed.Code), Message: failed.Msg}}
	case ask != nil:
		checked.Runs, checked.Planner, checked.Approve, checked.Respond = true, b.Program.Planner, b.Program.Approve, b.Program.Respond
	default:
		checked.Runs, checked.Writes = true, Writes(b, p)
		checked.steps(p, c.Tools)
		if len(checked.Steps) > 0 { // else it is not approved and not answered
			checked.Approve, checked.Respond = b.Program.Approve, b.Program.Respond
		}
	}
	return checked
}

func (c *Checked) steps(p *flow.Program, tools *Tools) {
	for i := range p.Steps {
		for _, call := range p.Steps[i].Calls {
			tool, _ := tools.Find(call.Tool)
			c.Steps = append(c.Steps, Step{Call: call.ID, Step: p.Steps[i].ID, Tool: call.Tool, Effect: tool.Effect, Needs: call.Needs})
		}
	}
}

// violated adds the errors of data that does not fit the model of the binding.
func (c *Checked) violated(b *bindings.Binding, violations []model.Violation) {
	for i := range violations {
		v := &violations[i]
		c.Errors = append(c.Errors, flow.Problem{Path: v.Path, Rule: v.Rule, Message: v.String()})
	}
	c.Code, c.Message, c.Feedback = events.CodeValidationFailed, c.Errors[0].Message, model.Feedback(b.ModelName, violations)
}

// Writes returns how many records a turn with this program stores: claim, program and response, and two for each call,
// without the steps of nested programs. A program without calls is not stored; an answer of the responder takes three
// more.
func Writes(b *bindings.Binding, p *flow.Program) int {
	const withoutCalls, withCalls, responder = 2, 3, 3
	calls := len(p.Calls())
	if calls == 0 {
		return withoutCalls
	}
	n := 2*calls + withCalls
	if b.Program.Respond != "" {
		n += responder
	}
	return n
}
