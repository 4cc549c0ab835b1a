package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/tools"
)

// A plan is compiled by the code that a worker compiles it with (internal/program), with the tools of a folder.

func (a *app) plan() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Check plans and orchestrations without running them",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Usagef("plan: check: see %s --help", c.CommandPath())
		},
	}
	c.AddCommand(a.planCheck())
	return c
}

// planSettings configure turnctl plan check.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type planSettings struct {
	liveSettings

	Workflows string `flag:"workflows" default:"workflows" help:"Folder of the workflow manifests and their tools."`
	Live      bool   `flag:"live" default:"false" help:"Ask services and servers for the schemas that the manifest lacks."`
}

// turnOfPlan selects the tool that would run a plan.
type turnOfPlan struct{ workflow, agent, tool string }

func (a *app) planCheck() *cobra.Command {
	var cfg planSettings
	var of turnOfPlan
	c := a.command(&cobra.Command{
		Use:   "check FILE",
		Short: "Report what a worker would do with a plan or an orchestration",
		Long: `Check reads the data of a turn for a tool of kind plan or orchestrate from FILE ("-" is standard input), or
the whole event of such a turn, which also names workflow and agent, and compiles it as a worker would: it prints the errors of a real run and the feedback for the model that
has written the program, or else its steps with their tools, effects and needs, and the number of records
that the turn would store if each step runs once and asks no person. Nothing runs and nothing is stored.

Without --live, services and servers are not asked: a reference into an output that only a server
declares is then reported as an error. MCP servers that are commands are started for --live.

Exit code: 0 the program would run, 1 it would not, 2 the file, the folder, the workflow or the tool is
not found. The shape of -o json:

  {"workflow", "agent", "tool", "kind", "runs", "planner", "approve", "respond",
   "steps": [{"call", "step", "tool_name", "effect", "needs": []}], "writes",
   "errors": [{"tool_index", "argument", "template", "error", "path", "rule", "message"}],
   "reason", "code", "message", "feedback", "warnings": [{"path", "rule", "message"}]}

Warnings are texts that look like references and are passed as text, keys that are ignored, and arguments
that a tool does not declare. They do not change the exit code.

With planner, that agent has to write the program first, and there are no steps yet.`,
		Example: `  turnctl plan check plan.json --workflow Travel
  turnctl plan check - --workflow Travel --tool cp__agent_orchestrate -o json < request.json`,
		Args: cli.Arguments(1, 1, "a file"),
	}, &cfg, func(ctx context.Context, args []string) error {
		checked, err := a.checkPlan(ctx, &cfg, of, args[0])
		if err != nil {
			return err
		}
		return a.printOutcome(checked.Runs, cfg.Format, checked, func(w io.Writer) { planText(w, checked) })
	})
	c.Flags().StringVar(&of.workflow, "workflow", "", "workflow of the turn (default: the only one of the folder)")
	c.Flags().StringVar(&of.agent, "agent", "", "agent of the turn (default: the first agent with the tool)")
	c.Flags().StringVar(&of.tool, "tool", "", "tool that would run the program (default: the only one for data of this form, automatic tools first)")
	return c
}

func (a *app) checkPlan(ctx context.Context, cfg *planSettings, of turnOfPlan, file string) (*program.Checked, error) {
	data, event, err := a.planData(file)
	if err != nil {
		return nil, err
	}
	of.workflow, of.agent = cmp.Or(of.workflow, event.workflow), cmp.Or(of.agent, event.agent)
	set, err := inspect(ctx, "plan check", cfg.Workflows, cfg.Python, bindings.VariableSources{})
	if err != nil {
		return nil, err
	}
	if names := set.Workflows(); of.workflow == "" && len(names) == 1 {
		of.workflow = names[0]
	} else if of.workflow == "" {
		return nil, cli.Usagef("plan check: the folder %s has %s: name one with --workflow", cfg.Workflows, plural.Of(len(names), "workflow"))
	}
	b, err := program.Select(set, of.workflow, of.agent, of.tool, data)
	if errors.Is(err, program.ErrSeveralTools) {
		return nil, cli.Usagef("plan check: %s: name one with --tool, or the agent of one with --agent", clean(messageOf(err), longestText))
	}
	if err != nil {
		return nil, cli.Usagef("plan check: %s; turnctl check lists errors in manifests", clean(messageOf(err), longestText))
	}
	if of.agent == "" {
		of.agent = b.Agent
	}
	if !cfg.Live {
		return program.Check(program.NewCompiler(set, b, of.agent, 1, nil), data), nil
	}
	box := a.newBox(cfg.Workflows, &cfg.toolSettings, set.StepTools(b, of.agent))
	defer box.close()
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	return program.Check(program.NewCompiler(set, b, of.agent, 1, a.describe(ctx, box)), data), nil
}

// describe asks the tools of a box what they report of themselves.
func (a *app) describe(ctx context.Context, box *box) program.Describe {
	return func(b *bindings.Binding) (tools.Description, bool) {
		if !canDescribe(b) {
			return tools.Description{}, false
		}
		l := box.describe(ctx, b)
		if !l.Reached {
			fmt.Fprintf(a.stderr, "tool %s is not described: %s\n", id(b.Tool), clean(l.Error, longestText))
		}
		return tools.Description{Input: l.Input, Output: l.Output, Effect: l.Effect}, l.Reached
	}
}

// planData reads the data of a turn, or takes it from the whole event of one, which names a workflow and an agent.
func (a *app) planData(file string) (data any, event turnOfPlan, err error) {
	name := file
	if file == "-" {
		name = "standard input"
	}
	text, err := a.readJSON("plan check", file, name)
	if err != nil {
		return nil, event, err
	}
	data, err = events.Decode(text)
	switch {
	case err != nil && isSeveral(text):
		return nil, event, cli.Usagef("plan check: %s has several documents, one a line: give one of them, for example by standard input (plan check -)", name)
	case err != nil:
		return nil, event, cli.Usagef("plan check: %s is not JSON: %s", name, messageOf(err))
	}
	if turn, err := events.DecodeTurn(text); err == nil && turn.Data != nil {
		return turn.Data, turnOfPlan{workflow: turn.Workflow, agent: turn.Agent}, nil
	}
	return data, event, nil
}

func planText(w io.Writer, c *program.Checked) {
	defer func() {
		for _, warning := range c.Warnings {
			fmt.Fprintln(w, "warning: "+clean(warning.Path+": "+warning.Message, longestText))
		}
	}()
	tool := id(c.Workflow) + "/" + id(c.Tool)
	switch {
	case !c.Runs:
		fmt.Fprintf(w, "%s would not run it (%s)\n", tool, c.Code)
		text := c.Feedback
		if text == "" {
			text = c.Message
		}
		fmt.Fprintln(w, cleanLines(text))
		return
	case c.Planner != "":
		fmt.Fprintf(w, "%s asks agent %s for the program first\n", tool, id(c.Planner))
		othersText(w, c)
		return
	}
	fmt.Fprintf(w, "%s runs %s and stores %s\n", tool, plural.Of(len(c.Steps), "call"), plural.Of(c.Writes, "record"))
	rows := make([][]string, 0, len(c.Steps))
	for _, s := range c.Steps {
		needs := ""
		if len(s.Needs) > 0 {
			needs = "needs " + id(strings.Join(s.Needs, ", "))
		}
		rows = append(rows, []string{id(s.Call), id(s.Tool), string(s.Effect), needs})
	}
	table(w, 2, rows, 0, 1)
	othersText(w, c)
}

// othersText names who takes part in a program in addition to its calls.
func othersText(w io.Writer, c *program.Checked) {
	if c.Approve {
		fmt.Fprintln(w, "a person approves it first")
	}
	if c.Respond != "" {
		fmt.Fprintf(w, "agent %s writes the answer\n", id(c.Respond))
	}
}
