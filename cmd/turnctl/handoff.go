package main

import (
	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

func (a *app) handoff() *cobra.Command {
	c := &cobra.Command{
		Use:   "handoff",
		Short: "Explain handoffs, evaluate their conditions",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Usagef("handoff: explain, eval: see %s --help", c.CommandPath())
		},
	}
	c.AddCommand(a.handoffExplain(), a.handoffEval())
	return c
}
