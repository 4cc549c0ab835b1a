package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

func TestWrongNumberOfArgumentsShowsHowTheCommandIsUsed(t *testing.T) {
	t.Parallel()
	c := &cobra.Command{Use: "call TOOL [JSON]"}
	check := cli.Arguments(1, 2, "the tool to call")
	require.NoError(t, check(c, []string{"greet"}))
	require.EqualError(t, check(c, nil), "call: name the tool to call: call TOOL [JSON]")
	require.EqualError(t, check(c, []string{"a", "b", "c"}), `call: 1 argument too many, the first is "c": call TOOL [JSON]`)
	require.EqualError(t, check(c, []string{"a", "b", "c", "d"}), `call: 2 arguments too many, the first is "c": call TOOL [JSON]`)
}

func TestArgumentWhereNoneIsTakenNamesTheFlagThatWasMeant(t *testing.T) {
	t.Parallel()
	c := &cobra.Command{Use: "ls"}
	require.NoError(t, cli.NoArguments("")(c, nil))
	require.EqualError(t, cli.NoArguments("")(c, []string{"x"}), `ls takes no arguments, and "x" is one: see ls --help`)
	require.EqualError(t, cli.NoArguments("--chat")(c, []string{"c1", "c2"}), `ls takes no arguments, and "c1" is one: did you mean --chat c1?`)
	require.EqualError(t, cli.NoArguments("--chat")(c, []string{"a b;"}), `ls takes no arguments, and "a b;" is one: did you mean --chat 'a b;'?`)
}

func TestHelpFitsTheColumns(t *testing.T) {
	t.Parallel()
	root := cli.Root(&cobra.Command{Use: "tool", Run: func(*cobra.Command, []string) {}}, "tool 1")
	root.Flags().String("long", "", strings.Repeat("many words ", 40))
	var out bytes.Buffer
	root.SetOut(&out)
	require.Equal(t, cli.OK, cli.Execute(t.Context(), root, []string{"--help"}))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len(strings.TrimRight(line, "\n")), cli.Width, line)
	}
}
