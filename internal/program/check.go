package program

import (
	"errors"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// Checked is the result of a dry run.
type Checked struct {
	Program  *flow.Program  // what would run; nil if it would not run, or a planner has to write it first
	Planner  string         // the agent that has to write the program
	Steps    []Step         // of the program, in order
	Writes   int            // of records, if every step runs once and asks no one
	Errors   []flow.Problem // why it would not run
	Reason   string         // see [flow.Refused]
	Code     events.Code    // of the response of the turn; "" if it would run
	Message  string         // the first error
	Feedback string         // for the model that has written the program
}

// Step is a call of a program.
type Step struct {
	Call   string // id
	Step   string // id of the step that it belongs to
	Tool   string
	Effect events.Effect
	Needs  []string // the calls whose outputs it uses
}

// Check does what a turn with this data does before its first step. Nothing is called or stored.
func Check(c *Compiler, data any) Checked {
	if m := c.Binding.Model; m != nil {
		conformed, _, violations := m.Conform(data)
		if len(violations) > 0 {
			return violated(c.Binding, violations)
		}
		data = conformed
	}
	p, ask, err := c.Compile(data)
	var refused *flow.Refused
	var failed *events.Error
	switch {
	case errors.As(err, &refused) && events.CodeOf(err) == events.CodeValidationFailed:
		return Checked{Errors: refused.Problems, Reason: refused.Reason, Code: events.CodeValidationFailed, Message: refused.Error(), Feedback: refused.Feedback()}
	case errors.As(err, &failed):
		return Checked{Code: failed.Code, Message: failed.Msg, Errors: []flow.Problem{{Rule: string(failed.Code), Message: failed.Msg}}}
	case ask != nil:
		return Checked{Planner: c.Binding.Program.Planner}
	}
	checked := Checked{Program: p, Steps: []Step{}}
	for i := range p.Steps {
		for _, call := range p.Steps[i].Calls {
			tool, _ := c.Tools.Find(call.Tool)
			checked.Steps = append(checked.Steps, Step{Call: call.ID, Step: p.Steps[i].ID, Tool: call.Tool, Effect: tool.Effect, Needs: call.Needs})
		}
	}
	checked.Writes = Writes(c.Binding, p)
	return checked
}

// violated is the result for data that does not fit the model of the binding.
func violated(b *bindings.Binding, violations []model.Violation) Checked {
	checked := Checked{Code: events.CodeValidationFailed, Feedback: model.Feedback(b.ModelName, violations)}
	for i := range violations {
		v := &violations[i]
		checked.Errors = append(checked.Errors, flow.Problem{Path: v.Path, Rule: v.Rule, Message: v.Path + ": " + v.Rule})
	}
	checked.Message = checked.Errors[0].Message
	return checked
}

// Writes returns how many records a turn with this program stores: its claim and its response, the program, and two
// for each call. A response that another agent writes takes three more.
func Writes(b *bindings.Binding, p *flow.Program) int {
	calls := len(p.Calls())
	const claimAndResponse, withProgram, responder = 2, 3, 3
	if calls == 0 {
		return claimAndResponse
	}
	n := 2*calls + withProgram
	if b.Program.Respond != "" {
		n += responder
	}
	return n
}
