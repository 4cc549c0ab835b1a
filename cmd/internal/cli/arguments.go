package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Arguments accepts least to most arguments. Its error shows how the command is used, and says
// what is missing: what describes it, for example "the tool to call".
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usagef("%s: name %s: %s", c.Name(), what, c.UseLine())
		case len(args) > most:
			return Usagef("%s: %s too many, the first is %.80q: %s", c.Name(), counted(len(args)-most), args[most], c.UseLine())
		}
		return nil
	}
}

func counted(n int) string {
	if n == 1 {
		return "1 argument is"
	}
	return fmt.Sprintf("%d arguments are", n)
}
