package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/internal/plural"
)

// Arguments accepts least to most arguments. Its error shows how the command is used, and
// what is missing: what describes it, for example "the tool to call".
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usagef("%s: name %s: %s", c.Name(), what, c.UseLine())
		case len(args) > most:
			return Usagef("%s: %s too many, the first is %.80q: %s", c.Name(), plural.Of(len(args)-most, "argument"), args[most], c.UseLine())
		}
		return nil
	}
}

// NoArguments accepts none. Its error names what was likely meant: flag, for example "--workflows", takes
// the argument; "" if no flag does.
func NoArguments(flag string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return nil
		case flag == "":
			return Usagef("%s takes no arguments, and %.80q is one: see %s --help", c.CommandPath(), args[0], c.CommandPath())
		}
		return Usagef("%s takes no arguments, and %.80q is one: did you mean %s %s?", c.CommandPath(), args[0], flag, ShellWord(args[0]))
	}
}

// CheckFolder refuses a folder of workflows that does not exist or is a file.
func CheckFolder(dir string) error {
	info, err := os.Stat(dir)
	const fix = "name the folder that holds one folder for each workflow, for example examples/01-hello/workflows"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder %q does not exist: %s", dir, fix)
	case err != nil:
		return fmt.Errorf("%w: %s", err, fix)
	case !info.IsDir():
		return fmt.Errorf("%q is not a folder: %s", dir, fix)
	}
	return nil
}
