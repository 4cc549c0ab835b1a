package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// The command reads the folder as a worker does, but runs nothing in it (inspect; load is for commands that run
// tools), makes a report (check_report.go) and prints it (check_text.go). With --explain or --schema it prints
// something else instead.

// checkSettings configures turnctl check. Interpreter and environment are chosen as the
// worker does.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type checkSettings struct {
	liveSettings
	contextSettings

	Live   bool `flag:"live" default:"false" help:"Ask services and servers whether they have the tools, and warn if not."`
	Strict bool `flag:"strict" default:"false" help:"Warnings fail too."`
	All    bool `flag:"verbose" short:"v" default:"false" help:"List every warning and info; by default those with the same cause are one entry with the first places."`
}

func (a *app) check() *cobra.Command {
	var cfg checkSettings
	var explain string
	var schema string
	c := a.command(&cobra.Command{
		Use:   "check [DIR]",
		Short: "Validate a folder of workflows and list its bindings",
		Long: `Check reads a folder of workflows (default: workflows) as the worker does, without a server, and without
running any of its code or an interpreter in it. Python files are parsed by the interpreter of --python,
else of $VIRTUAL_ENV or $PATH; of a .venv in DIR only the files of modules are read. It reports errors
and warnings with file (relative to DIR), line and fix, the tool of each agent and model, the handoff
rules by their numbers and what they mean, missing Python modules, and environment variables that the
tools read and that are not set (names only, never values). Of context variables it lists what they start
with and what their triggers do; values of the environment and of files are not shown.
With --live it also asks NATS services and MCP servers whether they have the tools, and starts servers
that are commands.

Exit code: 0 nothing worse than warnings, 1 errors (with --strict also warnings), 2 the folder
cannot be read. The shape of -o json:

  {"workflows": [{"name", "dir", "digest",
                  "bindings": [{"agent", "model", "tool", "kind", "where": {"text", …}, "file",
                                "function", "effect", "effect_why", "max_attempts", "timeout_ms",
                                "component", "display", "secret", "program"}],
                  "variables": [{"name", "type", "source", "start", "has_value", "tool",
                                 "agents", "triggers": [{"type", "agent", "match", "patterns",
                                                         "ui_hidden", "tool", "response_key",
                                                         "from", "to", "means"}]}],
                  "handoffs": [{"rule", "from": [], "to", "kind", "pre", "condition", "text", "file",
                                "line"}], "decider",
                  "corrections": [{"agent", "completion", "corrections"}],
                  "diagnostics": [{"severity", "workflow", "file", "line", "code", "message",
                                   "fix"}],
                  "missing_modules": [], "missing_env": [], "hidden_env": []}],
   "shared": [tools for all workflows, as bindings], "diagnostics": [of the folder as a whole],
   "digest", "errors", "warnings"}

timeout_ms is 0 where the worker's default applies, effect is pinned at the claim of a turn.`,
		Example: `  turnctl check ./workflows
  turnctl check ./workflows --explain Hello/Greeter/Greeting
  turnctl check --schema > oneturn.schema.json`,
		Args: cli.Arguments(0, 1, "a folder"),
	}, &cfg, func(ctx context.Context, args []string) error {
		if schema != "" {
			return a.editorSchema(schema)
		}
		dir := dirOf(args)
		set, err := inspect(ctx, "check", dir, cfg.Python, cfg.sources(a.env))
		if err != nil {
			return err
		}
		if explain != "" {
			return a.explain(cfg.Format, set, explain)
		}
		r := newReport(ctx, dir, set, cfg, environ{lookup: a.env, allow: cfg.ToolEnv})
		if cfg.Live {
			a.checkLive(ctx, dir, set, &cfg, r)
		}
		r.all = cfg.All
		good := r.Errors == 0 && (r.Warnings == 0 || !cfg.Strict)
		return a.printOutcome(good, cfg.Format, r, r.text)
	})
	c.Flags().StringVar(&explain, "explain", "", "explain how WORKFLOW/AGENT/MODEL is resolved (MODEL may be empty)")
	c.Flags().StringVar(&schema, "schema", "", "print the JSON Schema of oneturn.yaml for editors; --schema=shared prints the one of tools.oneturn.yaml")
	c.Flags().Lookup("schema").NoOptDefVal = "manifest"
	return c
}

// editorSchema prints the schema of a manifest.
func (a *app) editorSchema(of string) error {
	text := bindings.ManifestSchema()
	switch of {
	case "manifest":
	case "shared":
		var err error
		if text, err = bindings.SharedSchema(); err != nil {
			return fmt.Errorf("check: %w", err)
		}
	default:
		return cli.Usagef("check: unknown schema %q: use --schema or --schema=shared", of)
	}
	return a.print("text", nil, func(w io.Writer) { fmt.Fprintf(w, "%s\n", bytes.TrimSpace(text)) })
}

// inspect reads the folder for a command that runs nothing in it, not even an interpreter.
func inspect(ctx context.Context, command, dir, interpreter string, from bindings.VariableSources) (*bindings.Set, error) {
	return readFolder(ctx, command, dir, from, func(ctx context.Context, root string, files map[string][]byte) (map[string]bindings.PyFile, error) {
		chosen := interpreter
		if chosen == "" && len(files) > 0 {
			var err error
			if chosen, err = python.TrustedInterpreter(root); err != nil {
				return nil, err
			}
		}
		return python.Inspect(ctx, chosen, root, files)
	})
}

// load reads the folder as a worker does, for a command that runs tools of it.
func load(ctx context.Context, command, dir, interpreter string, from bindings.VariableSources) (*bindings.Set, error) {
	return readFolder(ctx, command, dir, from, python.Inspector(interpreter))
}

func readFolder(ctx context.Context, command, dir string, from bindings.VariableSources, inspect bindings.InspectFunc) (*bindings.Set, error) {
	if err := cli.CheckFolder(dir); err != nil {
		return nil, cli.Usagef("%s: %w", command, err)
	}
	set, err := bindings.Load(ctx, bindings.Options{Root: dir, Variables: from, Inspect: inspect})
	if err != nil {
		return nil, cli.Usagef("%s: %w", command, err)
	}
	return set, nil
}

// finding is a diagnostic that only this command reports.
func finding(severity diag.Severity, workflow, code, fix, format string, args ...any) bindings.Diagnostic {
	return bindings.Diagnostic{Workflow: workflow, Finding: diag.Finding{
		Severity: severity, Code: code, Message: fmt.Sprintf(format, args...), Fix: fix,
	}}
}
