package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/examples"
)

func exampleCommand(env cli.Lookup) *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:     "example",
		Short:   "Print turns for the workflow of examples/01-hello",
		Example: "  publisher example | publisher publish - --wait",
		Args:    cli.NoArguments(""),
	}, env, func(cmd *cobra.Command, _ []string) error {
		text, err := examples.Hello.ReadFile("01-hello/turns.jsonl")
		if err == nil {
			_, err = cmd.OutOrStdout().Write(text)
		}
		if err != nil {
			return fmt.Errorf("print the example: %w", err)
		}
		return nil
	})
}
