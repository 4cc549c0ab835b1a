package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/internal/plural"
)

// A text is read by package agentjson, as a worker reads it; an agent's model checks the object as it checks the data of a turn.

// extractSettings configure turnctl extract.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type extractSettings struct {
	config.Output

	Workflows string `flag:"workflows" default:"workflows" help:"Folder of the workflow manifests and their tools."`
	Python    string `flag:"python" example:"/usr/bin/python3.12" help:"Python interpreter of the tools, as for the worker."`
}

// written are the flags of the text.
type written struct {
	workflow, agent, finish string
	lines                   bool
}

func (a *app) extract() *cobra.Command {
	var cfg extractSettings
	var of written
	c := a.command(&cobra.Command{
		Use:   "extract",
		Short: "Find the JSON object in a text of an agent",
		Long: `Extract reads a text of an agent from standard input and prints the JSON object in it on one line: digits, forms of numbers and the
order of keys are kept. What was repaired and what surrounded the object is reported on standard error. A text that was
cut off, or that has two readings, is an error with feedback for the model that wrote it.

With --agent, the model of the agent decides between several objects, and an object that does not fit it is an error with the
feedback that a turn would end with.

With --jsonl, standard input has one JSON object a line, and each gives one line of output:

  {"text", "schema"?, "finish_reason"?}
  {"value", "repairs": [], "around": [], "warnings"?, "violations"?, "feedback"?}
  {"error", "message", "feedback"?}

text is a text, or content that is an object already. schema is the JSON Schema of the model (default: the one of --agent). A
value that does not fit it has violations and feedback. A line that cannot be read has the error bad_line or too_large, and the
next line is read. -o json prints the same object for a single text.

Exit code: 0 every object was found and fits, 1 one was not, 2 the folder, the workflow or the agent is not found.`,
		Example: `  turnctl extract < answer.txt
  turnctl extract --workflow Shop --agent Planner < answer.txt
  turnctl extract --jsonl < answers.jsonl > objects.jsonl`,
		Args: cli.NoArguments(""),
	}, &cfg, func(ctx context.Context, _ []string) error {
		want, err := modelOf(ctx, &cfg, of)
		if err != nil {
			return err
		}
		if of.lines {
			return a.extractLines(want)
		}
		return a.extractText(cfg.Format, of.finish, want)
	})
	c.Flags().StringVar(&of.workflow, "workflow", "", "workflow of the agent (default: the only one of the folder)")
	c.Flags().StringVar(&of.agent, "agent", "", "agent that wrote the text: its model checks the object")
	c.Flags().StringVar(&of.finish, "finish-reason", "", "why the model stopped, as its endpoint reports it")
	c.Flags().BoolVar(&of.lines, "jsonl", false, "read and write lines of JSON, one for each text")
	return c
}

// wanted is the model that an object has to fit.
type wanted struct {
	name       string
	violations func(object map[string]any) []model.Violation
}

// modelOf returns the model of the agent that is named, nil if none is.
func modelOf(ctx context.Context, cfg *extractSettings, of written) (*wanted, error) {
	switch {
	case of.lines && of.finish != "":
		return nil, cli.Usagef("extract: --finish-reason and --jsonl are mutually exclusive: write finish_reason into each line")
	case of.agent == "" && of.workflow == "":
		return nil, nil //nolint:nilnil // nothing is wanted
	case of.agent == "":
		return nil, cli.Usagef("extract: --workflow %s needs an agent: add --agent", cli.ShellWord(of.workflow))
	}
	set, err := inspect(ctx, "extract", cfg.Workflows, cfg.Python, bindings.VariableSources{})
	if err != nil {
		return nil, err
	}
	if names := set.Workflows(); of.workflow == "" && len(names) == 1 {
		of.workflow = names[0]
	} else if of.workflow == "" {
		return nil, cli.Usagef("extract: the folder %s has %s: name one with --workflow", cfg.Workflows, plural.Of(len(names), "workflow"))
	}
	agent, err := set.Agent(of.workflow, of.agent)
	switch {
	case err != nil:
		return nil, cli.Usagef("extract: %s; turnctl check lists errors in manifests", clean(messageOf(err), longestText))
	case agent.Model == nil:
		return nil, cli.Usagef("extract: agent %s of workflow %s has no model that can be used: turnctl check lists agents and models", id(of.agent), id(agent.Workflow))
	}
	return &wanted{name: agent.ModelName, violations: func(object map[string]any) []model.Violation {
		_, violations := agent.Model.Check(object)
		return violations
	}}, nil
}

// extracted is the outcome for one text, as JSON.
type extracted struct {
	Value      json.RawMessage         `json:"value,omitempty"`
	Repairs    []agentjson.Repair      `json:"repairs,omitzero"` // of a value: [] if there are none
	Around     []agentjson.Surrounding `json:"around,omitzero"`
	Warnings   []agentjson.Warning     `json:"warnings,omitempty"`
	Violations []model.Violation       `json:"violations,omitempty"`
	Error      agentjson.Code          `json:"error,omitempty"`
	Message    string                  `json:"message,omitempty"`
	Feedback   string                  `json:"feedback,omitempty"`
}

func (e *extracted) good() bool { return e.Error == "" && len(e.Violations) == 0 }

// extract returns the outcome for content in JSON.
func extract(content json.RawMessage, finishReason string, want *wanted) *extracted {
	o := agentjson.Options{FinishReason: finishReason}
	if want != nil {
		o.Fits = func(object map[string]any) bool { return len(want.violations(object)) == 0 }
	}
	found, err := agentjson.ExtractContent(content, o)
	if e := new(agentjson.Error); errors.As(err, &e) {
		return &extracted{Error: e.Code, Message: e.Error(), Feedback: e.Feedback()}
	}
	out := &extracted{
		Value: found.JSON, Warnings: found.Warnings,
		Repairs: append([]agentjson.Repair{}, found.Repairs...), Around: append([]agentjson.Surrounding{}, found.Around...),
	}
	if want != nil {
		if out.Violations = want.violations(found.Object); len(out.Violations) > 0 {
			out.Feedback = model.Feedback(want.name, out.Violations)
		}
	}
	return out
}

// extractText reads one text.
func (a *app) extractText(format, finishReason string, want *wanted) error {
	text, err := io.ReadAll(io.LimitReader(a.stdin, agentjson.MaxTextBytes+1))
	if err != nil {
		return fmt.Errorf("extract: read standard input: %w", err)
	}
	content, err := json.Marshal(string(text))
	if err != nil {
		return fmt.Errorf("extract: %w", err)
	}
	out := extract(content, finishReason, want)
	if format == "json" {
		if err := cli.WriteJSON(a.stdout, out, "  "); err != nil || out.good() {
			return err
		}
		return cli.ErrReported
	}
	if !out.good() {
		message := out.Message
		if message == "" {
			message = "extract object: it does not fit the model " + id(want.name)
		}
		fmt.Fprintf(a.stderr, "feedback for the model:\n%s\n", cleanLines(out.Feedback))
		return errors.New(clean(message, longestText))
	}
	a.reportOn(out)
	return cli.WriteJSON(a.stdout, out.Value, "")
}

// reportOn writes what was repaired, dropped and unwrapped to standard error.
func (a *app) reportOn(out *extracted) {
	if len(out.Repairs) > 0 {
		fmt.Fprintln(a.stderr, "repaired: "+joined(out.Repairs))
	}
	if len(out.Around) > 0 {
		fmt.Fprintln(a.stderr, "around the object: "+joined(out.Around))
	}
	for _, w := range out.Warnings {
		fmt.Fprintf(a.stderr, "warning: %s: \\f and \\b are a form feed and a backspace in JSON: for a backslash write \\\\\n", w)
	}
}

func joined[T ~string](names []T) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = string(name)
	}
	return strings.Join(all, ", ")
}
