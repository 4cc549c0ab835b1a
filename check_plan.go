package oneturn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/toolbox"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// PlanToCheck is a plan or an orchestration for [Client.CheckPlan].
type PlanToCheck struct {
	// Workflows is the folder of workflow folders, as in [Config]. Bindings, such as [Worker.Bindings] returns, are used
	// instead if they are set.
	Workflows string
	Bindings  *bindings.Set
	// Workflow has the tools of the program.
	Workflow string
	// Agent of the turn, may be empty.
	Agent string
	// Tool is the name of the tool that would run the program. Defaults to the only one for data of this form, automatic
	// tools first.
	Tool string
	// Data is what the turn has as its data: a plan, or the request of an orchestration. Any value that encoding/json can
	// write.
	Data any
}

// PlanCheck is the result of [Client.CheckPlan].
type PlanCheck struct {
	Tool string // that would run the program
	// Runs reports that nothing is wrong. If Planner is set, an agent has to write the program first, and there are no
	// Steps yet.
	Runs    bool
	Planner string
	// Approve reports that a person approves the program before its first step; Respond is the agent that writes the answer
	// after it, "" if none does.
	Approve bool
	Respond string
	Steps   []PlanStep // in order
	// Writes is how many records the turn would store if each step runs once and asks no person, without nested programs.
	Writes int
	// If the program would not run, the response of the turn has these errors, this code and this feedback. Feedback is for the model
	// that has written the program, and may be empty.
	Errors   []flow.Problem
	Code     events.Code
	Feedback string
	// Warnings are what the program probably does not mean: texts that look like references, keys that are ignored,
	// arguments that a tool does not declare. It may run all the same.
	Warnings []flow.Problem
}

// PlanStep is a call of a program.
type PlanStep struct {
	Call   string // id: of a plan 0, 1, …; of an orchestration the id of its step
	Tool   string
	Effect Effect
	Needs  []string // ids of the calls whose outputs it uses
}

// CheckPlan reports what a worker would do with a plan or an orchestration: the errors of a real run, else its steps.
// Nothing is called or stored, and no worker is needed; NATS services whose manifest entries lack schemas are asked
// for them. The error is for what cannot be checked: the folder, the workflow or the tool is not found.
func (c *Client) CheckPlan(ctx context.Context, p *PlanToCheck) (*PlanCheck, error) {
	checked, err := c.checkPlan(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("check plan: %w", err)
	}
	result := &PlanCheck{
		Tool: checked.Tool, Runs: checked.Runs, Planner: checked.Planner, Writes: checked.Writes, Errors: checked.Errors, Code: checked.Code, Feedback: checked.Feedback,
		Warnings: checked.Warnings, Approve: checked.Approve, Respond: checked.Respond,
	}
	for _, step := range checked.Steps {
		result.Steps = append(result.Steps, PlanStep{Call: step.Call, Tool: step.Tool, Effect: step.Effect, Needs: step.Needs})
	}
	return result, nil
}

func (c *Client) checkPlan(ctx context.Context, p *PlanToCheck) (*program.Checked, error) {
	body, err := json.Marshal(p.Data)
	if err != nil {
		return nil, fmt.Errorf("write PlanToCheck.Data as JSON: %w", err)
	}
	data, err := events.Decode(body)
	if err != nil {
		return nil, err
	}
	set := p.Bindings
	if set == nil {
		if p.Workflows == "" {
			return nil, &events.Error{Code: events.CodeBadArgs, Msg: "set PlanToCheck.Workflows or PlanToCheck.Bindings"}
		}
		if set, err = bindings.Load(ctx, bindings.Options{Root: p.Workflows, Inspect: python.Inspector("")}); err != nil {
			return nil, err
		}
	}
	b, err := program.Select(set, p.Workflow, p.Agent, p.Tool, data)
	var several *events.Error
	if errors.Is(err, program.ErrSeveralTools) && errors.As(err, &several) {
		return nil, &events.Error{Code: several.Code, Msg: several.Msg + ": set PlanToCheck.Tool, or PlanToCheck.Agent to the agent of one"}
	}
	if err != nil {
		return nil, err
	}
	agent := p.Agent
	if agent == "" {
		agent = b.Agent
	}
	services := toolbox.New(toolbox.Options{Conn: c.nc, Prefix: c.o.Prefix})
	defer func() { _ = services.Close(context.WithoutCancel(ctx)) }() // no tool is running
	return program.Check(program.NewCompiler(set, b, agent, 1, describe(ctx, services)), data), nil
}

// describeTimeout bounds how long a service may take to describe itself.
const describeTimeout = 2 * time.Second

// describe asks NATS services about themselves.
func describe(ctx context.Context, services *toolbox.Toolbox) program.Describe {
	return func(b *bindings.Binding) (tools.Description, bool) {
		if b.Kind != bindings.KindNATS {
			return tools.Description{}, false
		}
		tool, err := services.Find(b)
		if err != nil {
			return tools.Description{}, false
		}
		describer, ok := tool.(tools.Describer)
		if !ok {
			return tools.Description{}, false
		}
		ctx, cancel := context.WithTimeout(ctx, describeTimeout)
		defer cancel()
		d, err := describer.Describe(ctx)
		return d, err == nil
	}
}
