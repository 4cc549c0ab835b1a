package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff/expression"
)

// evaluation is the result of a condition.
type evaluation struct {
	Value *bool `json:"value,omitempty"`

	Error   string `json:"error,omitempty"` // code
	At      string `json:"at,omitempty"`    // load or evaluate
	Message string `json:"message,omitempty"`
}

func evaluate(text string, variables map[string]any) evaluation {
	e, err := expression.Parse(text)
	var holds bool
	if err == nil {
		holds, err = e.Eval(variables)
	}
	var known *expression.Error
	switch {
	case !errors.As(err, &known):
		return evaluation{Value: &holds}
	case known.AtLoad():
		return evaluation{Error: string(known.Code), At: "load", Message: known.Error()}
	}
	return evaluation{Error: string(known.Code), At: "evaluate", Message: known.Error()}
}

// evalSettings configure turnctl handoff eval.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type evalSettings struct {
	config.Output

	Context string `flag:"context" help:"File with the context variables as a JSON object (\"-\" is standard input). Default: no variables."`
	Lines   bool   `flag:"jsonl" default:"false" help:"Read conditions from standard input, one JSON object a line."`
}

func (a *app) handoffEval() *cobra.Command {
	var cfg evalSettings
	return a.command(&cobra.Command{
		Use:   "eval EXPR",
		Short: "Evaluate a condition of a handoff over context variables",
		Long: `Eval evaluates EXPR, a condition in the expression language of handoffs, over the context variables of a
file, and prints true or false. Without variables it checks the condition only as far as it has none.
Put -- before an EXPR that begins with a minus.

With --jsonl it reads lines {"expression", "context"} from standard input and writes a line for each,
{"value"} or {"error", "at", "message"}: error is the code, at is load if the condition is invalid, else
evaluate. A line that is not such an object, or longer than 8 MiB, has the error bad_line; empty lines are
skipped.

Exit code: 0 evaluated, or all lines were read, also those with errors; 1 the condition is invalid or cannot be evaluated; 2 the
file cannot be read. The shape of -o json: {"value"} or {"error", "at", "message"}.`,
		Example: `  turnctl handoff eval '${done} == True and len(${items}) > 0' --context context.json
  turnctl handoff eval --jsonl < conditions.jsonl`,
		Args: cobra.MaximumNArgs(1),
	}, &cfg, func(_ context.Context, args []string) error {
		switch {
		case cfg.Lines && (len(args) > 0 || cfg.Context != ""):
			return cli.Usagef("handoff eval: --jsonl reads conditions and contexts from standard input: omit EXPR and --context")
		case cfg.Lines:
			return a.eachLine("handoff eval", evaluateLine)
		case len(args) == 0:
			return cli.Usagef("handoff eval: name a condition, for example '${done} == True', or set --jsonl")
		}
		variables, err := a.contextFile("handoff eval", cfg.Context)
		if err != nil {
			return err
		}
		result := evaluate(args[0], variables)
		if cfg.Format == "text" && result.Value == nil {
			return fmt.Errorf("handoff eval: %s: %s", result.Error, clean(result.Message, longestText))
		}
		return a.printOutcome(result.Value != nil, cfg.Format, result, func(w io.Writer) { fmt.Fprintln(w, *result.Value) })
	})
}

// contextFile reads the variables in a file that a flag names; nil without one.
func (a *app) contextFile(command, name string) (map[string]any, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // there are none
	}
	text, err := a.readJSON(command, name, "the context")
	if err != nil {
		return nil, err
	}
	value, err := events.Decode(text)
	if err != nil {
		return nil, cli.Usagef("%s: the context is not JSON: %s", command, messageOf(err))
	}
	variables, ok := value.(map[string]any)
	if !ok {
		return nil, cli.Usagef("%s: the context must be a JSON object of variables by name", command)
	}
	return variables, nil
}

// evaluateLine evaluates a line of --jsonl.
func evaluateLine(line []byte, n int, whole bool) any {
	refused := func(why string) any {
		return evaluation{Error: badLine, At: "load", Message: fmt.Sprintf("line %d %s", n, why)}
	}
	if !whole {
		return refused(fmt.Sprintf("has over %d bytes: send a smaller context", maxLine))
	}
	value, err := events.Decode(line)
	object, isObject := value.(map[string]any)
	switch {
	case err != nil:
		return refused("is not JSON: " + messageOf(err))
	case !isObject:
		return refused(`is not an object {"expression", "context"}`)
	}
	text, isText := object["expression"].(string)
	variables, isObject := object["context"].(map[string]any)
	switch {
	case !isText:
		return refused(`has no expression: write {"expression": "…"}`)
	case object["context"] != nil && !isObject:
		return refused("has a context that is not an object of variables by name")
	}
	return evaluate(text, variables)
}
