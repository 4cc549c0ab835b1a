package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/plural"
)

// The settings here are shared by commands that find tools (toolSettings) and by those that ask services and
// servers (liveSettings). tools ls prints a row for each tool (tools_row.go), also if a manifest has errors: they
// go to standard error, because tools with errors have no row.

// toolSettings locate tools and their servers, as for the worker.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type toolSettings struct {
	config.NATS
	config.Output

	Python  string   `flag:"python" example:"/usr/bin/python3.12" help:"Python interpreter of the tools, as for the worker. Without it the workflow's .venv, the folder's .venv, $VIRTUAL_ENV, then python3."`
	ToolEnv []string `flag:"tool-env" example:"OPENAI_API_KEY,APP_*" help:"Environment variables that are passed to Python tools, as for the worker."`
}

// contextSettings are where context variables may get their values from, as for the worker.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type contextSettings struct {
	ContextEnv   []string `flag:"context-env" example:"APP_MODE,FEATURE_*" help:"Environment variables that manifests may read as values of context variables, as for the worker."`
	ContextFiles string   `flag:"context-files" example:"/srv/app" help:"Folder that the files of context variables must be in, as for the worker."`
}

// sources returns where context variables get their values from.
func (c *contextSettings) sources(env func(string) (string, bool)) bindings.VariableSources {
	return bindings.VariableSources{Env: c.ContextEnv, Files: c.ContextFiles, Lookup: env}
}

func (a *app) tools() *cobra.Command {
	c := &cobra.Command{
		Use:   "tools",
		Short: "List the tools of a folder of workflows, and pin the tools of MCP servers",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Usagef("tools: ls or pin: see %s --help", c.CommandPath())
		},
	}
	c.AddCommand(a.toolsLs(), a.toolsPin())
	return c
}

// liveSettings configure commands that ask services and servers.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type liveSettings struct {
	toolSettings

	Timeout time.Duration `flag:"timeout" default:"5s" min:"1ms" max:"10m" help:"How long services and servers may take to answer, all together."`
}

// toolsLsSettings configure turnctl tools ls.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type toolsLsSettings struct {
	liveSettings

	Live bool `flag:"live" default:"false" help:"Ask services and servers for schemas, versions and effects."`
}

func (a *app) toolsLs() *cobra.Command {
	var cfg toolsLsSettings
	return a.command(&cobra.Command{
		Use:   "ls [DIR]",
		Short: "List tools: kind, place, schema, effect, limits",
		Long: `Ls lists the tools of a folder of workflows (default: workflows): their agents, kinds, places and rules.
Tools that the worker's program registers (Go) are listed if a manifest names them. It runs no tool and
needs no server.

With --live it asks NATS services and MCP servers for the schemas, a version or digest, and the effect
if the manifest trusts it. MCP servers that are commands are started for that. HTTP endpoints and models
are not asked.

Exit code: 0 success, 1 a manifest has errors or something did not answer, 2 the folder cannot be
read. Errors go to standard error.`,
		Example: `  turnctl tools ls ./workflows
  turnctl tools ls ./workflows --live --nats nats://127.0.0.1:4222`,
		Args: cli.Arguments(0, 1, "a folder"),
	}, &cfg, func(ctx context.Context, args []string) error {
		set, err := inspect(ctx, "tools ls", dirOf(args), cfg.Python, bindings.VariableSources{})
		if err != nil {
			return err
		}
		rows := toolRows(set)
		missing := 0
		if cfg.Live {
			missing = a.live(ctx, dirOf(args), &cfg.liveSettings, rows)
		}
		errs := a.toolErrors(dirOf(args), set)
		return a.printOutcome(missing+errs == 0, cfg.Format, rows, func(w io.Writer) { toolsText(w, rows) })
	})
}

// toolErrors prints and counts the errors of the manifests: their tools are not listed.
func (a *app) toolErrors(dir string, set *bindings.Set) (n int) {
	const most = 10
	causes := 0
	for _, c := range bindings.Causes(set.Diagnostics()) {
		if c.Severity != diag.SeverityError {
			continue
		}
		if causes++; causes <= most {
			fmt.Fprintln(a.stderr, clean(c.String(), longestText))
		}
		n += 1 + len(c.More)
	}
	if n > 0 {
		fmt.Fprintf(a.stderr, "%s: turnctl check %s lists all findings\n", plural.Of(n, "error"), dir)
	}
	return n
}

// dirOf is the folder of a command line.
func dirOf(args []string) string {
	if len(args) == 0 {
		return "workflows"
	}
	return args[0]
}

// allTools lists every tool of a set that can be called, the tools for all workflows last. The bindings have no
// agent.
func allTools(set *bindings.Set) []*bindings.Binding {
	var all []*bindings.Binding
	for _, workflow := range set.Workflows() {
		all = append(all, set.Tools(workflow)...)
	}
	return append(all, set.Shared()...)
}
