package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/retry"
	"github.com/oneturn/oneturn/subjects"
)

// Retry reads the journal as a worker does (retry_find.go, internal/retry), and publishes the retry (retry_publish.go) only if a
// worker would run it, as far as that is known: with --workflows by the check that a worker makes (retry_check.go,
// internal/program). retry_report.go has the output.

// retryConfig configures turnctl retry.
//
//nolint:tagalign // the flag comes first and the help last, as in package config
type retryConfig struct {
	config.Turnctl

	Workflows string `flag:"workflows" help:"Folder of the workflow manifests: checks, as a worker does, whether the results can be kept. Without it only the worker checks that."`
	Python    string `flag:"python" example:"/usr/bin/python3.12" help:"Python interpreter for --workflows, as for the worker."`
	Live      bool   `flag:"live" default:"false" help:"Ask services and servers for the schemas that the manifests lack, for --workflows."`
}

// retrySettings name a turn and how it is retried.
type retrySettings struct {
	turn   events.TurnID
	key    string
	rerun  []string
	dryRun bool
	// compiler returns the compiler of the turn's tool with the manifests of a folder, and ends what it has started; nil without a folder.
	compiler func(ctx context.Context, claim *events.ToolCall) (c *program.Compiler, done func(), err error)
}

func (a *app) retry() *cobra.Command {
	var cfg retryConfig
	var want retrySettings
	c := a.command(&cobra.Command{
		Use:   "retry CHAT TURN",
		Short: "Run a program that failed again, without its finished calls",
		Long: `Retry publishes a new turn that runs the program of an ended turn again: the calls that have
finished keep their results and are not entered again; the one that failed and those that did not start
run. Workflow, agent, user and data stay the same. A program is a turn of a tool of kind plan or
orchestrate; it must have failed or been cancelled.

The new turn has the key of the turn and "~retry1", of a retry the next number, so a retry that is given
twice, or by two people, is one turn. A retry that a worker refused keeps its key: given again, the
command takes the next number. --as sets another key, which no turn has yet. Two retries of one turn under
different keys are two turns: both run the calls that have not finished.

A call whose effect may have happened runs again only if --rerun names it, unless its tool is idempotent
or has no effect: its worker or its process died, it was cancelled or timed out, or its tool returned and
its result was not used. Find out first whether it has happened. --dry-run lists what would be copied and what would run, and publishes nothing.

With --workflows, the program and the results that are kept are first checked with these manifests, as a
worker does, also for --dry-run; nothing is published that a worker would refuse.

Exit code: 0 the retry is published, or was before; 1 it is refused, or calls need --rerun.`,
		Example: `  turnctl retry chat-42 turn-7 --dry-run
  turnctl retry chat-42 turn-7 --app acme --rerun 2`,
		Args: cli.Arguments(2, 2, "a turn"),
	}, &cfg, func(ctx context.Context, args []string) error {
		want.turn.Chat, want.turn.Turn = args[0], args[1]
		if want.turn.Chat == "" || want.turn.Turn == "" {
			return cli.Usagef("retry: chat %q and turn %q: neither may be empty", want.turn.Chat, want.turn.Turn)
		}
		s, err := a.connect(&cfg.Turnctl)
		if err != nil {
			return err
		}
		defer s.close()
		if cfg.Workflows != "" {
			want.compiler = a.retryCompiler(&cfg)
		} else if cfg.Live {
			return cli.Usagef("retry: --live asks services for schemas that the manifests lack: name their folder with --workflows")
		}
		out, err := s.retry(ctx, &want)
		if err != nil {
			return err
		}
		return a.printOutcome(out.good(), cfg.Format, out, out.text)
	})
	c.Flags().StringVar(&want.turn.App, "app", events.DefaultApp, "tenant of the turn")
	c.Flags().StringVar(&want.turn.Run, "run", "", "run id of the turn, if its producer sends one")
	c.Flags().StringVar(&want.key, "as", "", "turn key of the retry (default: the key of the turn and ~retry1); a retry under another key runs the open calls once more")
	c.Flags().StringSliceVar(&want.rerun, "rerun", nil, "calls that run again although their effect may have happened")
	c.Flags().BoolVar(&want.dryRun, "dry-run", false, "list what would be copied and what would run")
	return c
}

func (s *server) retry(ctx context.Context, want *retrySettings) (*retryReport, error) {
	if _, err := s.journalState(ctx); err != nil {
		return nil, err
	}
	pool := ""
	read := func(id events.TurnID) (*retry.Past, error) {
		past, of, err := s.past(ctx, id)
		pool = cmp.Or(pool, of)
		return past, err
	}
	of, past, err := retry.Find(want.turn, read)
	if past != nil && past.Claim == nil {
		return nil, s.missingProgram(ctx, of, read)
	}
	if err != nil {
		return nil, fmt.Errorf("retry: %s", clean(messageOf(err), longestText))
	}
	id, existed, err := retry.Key(of, want.key, read)
	if err != nil {
		return nil, fmt.Errorf("retry: %s", clean(messageOf(err), longestText))
	}
	r := &retryReport{
		DryRun: want.dryRun, App: id.App, Chat: id.Chat, Run: id.Run, Turn: of.Turn, Retry: id.Turn, Workflow: past.Claim.WorkflowName,
		Planned: past.Program() != nil, NeedsRerun: []string{}, Existed: existed,
	}
	if existed {
		r.Calls = past.Outline(nil).Calls
		return r, s.readRetry(ctx, r, id)
	}
	rerun, err := r.decide(ctx, past, want)
	if err != nil || r.State != "" {
		return r, err
	}
	if r.Message, err = s.publishRetry(ctx, events.NewRetry(id, r.Workflow, of.Turn, rerun), cmp.Or(pool, subjects.DefaultPool)); err != nil {
		return nil, err
	}
	r.State = retryPublished
	return r, s.awaitRetry(ctx, r, id)
}

// decide sets the state of a retry that is not published, and returns the calls that it is to name if it is.
func (r *retryReport) decide(ctx context.Context, past *retry.Past, want *retrySettings) (rerun []string, err error) {
	outline := past.Outline(nil)
	var compiler *program.Compiler
	if r.Checked = want.compiler != nil; r.Checked {
		c, done, err := want.compiler(ctx, past.Claim)
		if err != nil {
			return nil, err
		}
		defer done()
		compiler, outline = c, c.RetryOutline(past)
	}
	r.Calls = outline.Calls
	if err := outline.Known(want.rerun); err != nil { // --rerun has what the program lacks, or what cannot run again
		return nil, cli.Usagef("retry: %s", messageOf(err))
	}
	if !outline.Covers(want.rerun) {
		r.NeedsRerun, r.State = outline.Uncertain(), retryNeedsRerun
		return nil, nil
	}
	refused, err := checkRetry(compiler, past, want.rerun)
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		r.State, r.Code, r.Content = retryRefused, events.CodeOf(refused), messageOf(refused)
	case want.dryRun:
		r.State = retryPossible
	}
	return slices.Concat(want.rerun, outline.Uncertain()), nil // its worker may know of stricter effects
}
