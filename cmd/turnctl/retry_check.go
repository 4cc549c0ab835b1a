package main

import (
	"context"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/retry"
)

// The check of turnctl retry --workflows: whether a worker with these manifests would run the retry.

// retryCompiler returns the function that finds the compiler of a turn's tool with the manifests of a folder.
func (a *app) retryCompiler(cfg *retryConfig) func(context.Context, *events.ToolCall) (*program.Compiler, func(), error) {
	return func(ctx context.Context, claim *events.ToolCall) (*program.Compiler, func(), error) {
		set, err := inspect(ctx, "retry", cfg.Workflows, cfg.Python, bindings.VariableSources{})
		if err != nil {
			return nil, nil, err
		}
		b, err := program.RetryBinding(set, claim)
		if err != nil {
			return nil, nil, cli.Usagef("retry: %s; turnctl check lists errors in manifests", clean(messageOf(err), longestText))
		}
		depth := max(1, claim.Depth+1)
		if !cfg.Live {
			return program.NewCompiler(set, b, claim.Agent, depth, nil), func() {}, nil
		}
		box := a.newBox(cfg.Workflows, &toolSettings{NATS: cfg.NATS, Output: cfg.Output, Python: cfg.Python}, set.StepTools(b, claim.Agent))
		ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
		done := func() {
			cancel()
			box.close()
		}
		return program.NewCompiler(set, b, claim.Agent, depth, a.describe(ctx, box)), done, nil
	}
}

// checkRetry returns why a worker would refuse a retry with the manifests of the compiler, nil if it would not or there is none.
func checkRetry(c *program.Compiler, past *retry.Past, rerun []string) (refused, err error) {
	if c == nil {
		return nil, nil
	}
	args, err := past.Arguments()
	if err != nil {
		return nil, err
	}
	if _, err = c.Retry(past, args, rerun); events.CodeOf(err) != "" {
		return err, nil
	}
	return nil, err
}
