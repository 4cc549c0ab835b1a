package program

import (
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/retry"
)

// Retry is what a retry of a turn runs and what it keeps.
type Retry struct {
	Program *flow.Program // nil if the turn has stored none: then the program is made as in any turn
	Copies  *retry.Copies // nil likewise
}

// RetryBinding returns the binding of the tool whose turn is retried. The error has code no_binding if the workflow is not known, and
// unknown_tool if it has no such tool that runs programs.
func RetryBinding(set *bindings.Set, claim *events.ToolCall) (*bindings.Binding, error) {
	b := set.Bound(claim.WorkflowName, claim.Agent, claim.ToolName)
	switch {
	case b == nil && set.WorkflowDigest(claim.WorkflowName) == "":
		_, err := set.ResolvePlan(claim.WorkflowName, claim.Agent)
		msg := err.Error()
		if coded, ok := errors.AsType[*events.Error](err); ok {
			msg = coded.Msg
		}
		return nil, &events.Error{Code: events.CodeNoBinding, Op: "retry", Msg: msg, Err: err}
	case b == nil, b.Program == nil:
		return nil, &events.Error{Code: events.CodeUnknownTool, Op: "retry", Msg: "the turn to retry cannot run: " + whyNoProgram(set, claim)}
	}
	return b, nil
}

// whyNoProgram is why the tool of a claim runs no programs with the current manifests.
func whyNoProgram(set *bindings.Set, claim *events.ToolCall) string {
	b, err := set.Tool(claim.WorkflowName, claim.ToolName)
	coded, isCoded := errors.AsType[*events.Error](err)
	switch {
	case isCoded:
		return coded.Msg
	case err != nil:
		return err.Error()
	case b.Program == nil:
		return fmt.Sprintf("tool %q is of kind %s with the current manifests: send its work as a new turn", claim.ToolName, b.Kind)
	}
	return fmt.Sprintf("agent %q does not call tool %q with the current manifests", claim.Agent, claim.ToolName)
}

// Retry compiles the program of a turn that is retried, whose arguments are args, with the current manifests, and takes over the results
// of its calls. Rerun names the calls that run again although their effect may have happened. The error is an [events.Error] or a
// [flow.Refused] if the retry is refused; after any other it is not known whether it may run.
func (c *Compiler) Retry(past *retry.Past, args any, rerun []string) (*Retry, error) {
	compiled, ask, err := c.Compile(args)
	if err != nil {
		return nil, err
	}
	before := past.Program()
	if before == nil { // nothing was called
		return &Retry{}, past.Outline(nil).Consent(rerun)
	}
	if ask != nil {
		reply, err := past.PlannerReply()
		if err != nil {
			return nil, err
		}
		if compiled = before; reply != nil {
			if compiled, err = c.Planner(ask).Compile(events.JSONOf(reply)); err != nil {
				return nil, err
			}
		}
	}
	if !compiled.SameSteps(before) {
		return nil, &events.Error{Code: events.CodeValidationFailed, Op: "retry", Msg: "with the current manifests the program has other steps, so its results cannot be kept: send it again as a new turn"}
	}
	outline := c.RetryOutline(past)
	if err := outline.Consent(rerun); err != nil {
		return nil, err
	}
	copies, err := past.Copies(outline)
	if err != nil {
		return nil, err
	}
	return &Retry{Program: compiled, Copies: copies}, checkOutputs(copies, compiled, c.Tools, "")
}

// RetryOutline returns which calls of a turn a retry keeps and which it runs, by the current effects of their tools.
func (c *Compiler) RetryOutline(past *retry.Past) *retry.Outline {
	return past.Outline(func(name string) events.Effect {
		tool, _ := c.Tools.Find(name)
		return tool.Effect
	})
}

// checkOutputs checks the outputs that are kept, also of nested programs, against the schemas that their tools declare now.
func checkOutputs(copies *retry.Copies, of *flow.Program, tools *Tools, prefix string) error {
	for _, call := range of.Calls() {
		b, id := tools.Binding(call.Tool), prefix+call.ID
		copied := copies.Call(id)
		switch {
		case b == nil:
		case copied != nil && copied.Success && b.Output != nil && b.Program == nil:
			_, violations, err := b.Output.ConformJSON(events.JSONOf(copied.Output))
			if err == nil && len(violations) > 0 {
				err = errors.New(model.Summary(violations))
			}
			if err != nil {
				return &events.Error{Code: events.CodeValidationFailed, Op: "retry", Msg: fmt.Sprintf(
					"the result of call %s does not fit the output schema that tool %s has now, so it cannot be kept: %s. Send the program again as a new turn", id, call.Tool, err)}
			}
		case copied == nil && b.Program != nil:
			nested, err := copies.Program(id + "#")
			if err != nil {
				return &events.Error{Code: events.CodeStateCorrupt, Op: "retry", Msg: "a program of the turn to retry cannot be read", Err: err}
			}
			if nested != nil {
				if err := checkOutputs(copies, nested, tools.catalog.Tools(b, tools.agent), id+"#"); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
