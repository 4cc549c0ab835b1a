package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

//nolint:tagalign // the flag comes first and the help last, as in package config
type settings struct {
	Count int `flag:"count" default:"1" min:"1" max:"9" help:"How many."`
}

//nolint:tagalign // the flag comes first and the help last, as in package config
type more struct {
	Deep int `flag:"deep" default:"1" min:"1" max:"9" help:"How deep."`
}

func noEnv(string) (string, bool) { return "", false }

// execute runs the command "tool" and its command "count", whose work do is.
func execute(do func(*settings) error, args ...string) (code int, stdout, stderr string) {
	var s settings
	root := cli.Root(&cobra.Command{Use: "tool"}, "tool 1")
	root.AddCommand(cli.Version(noEnv), cli.Command(&cobra.Command{Use: "count", Args: cobra.NoArgs}, noEnv,
		func(*cobra.Command, []string) error { return do(&s) }, &s, &more{}))
	var out, wrong bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&wrong)
	code = cli.Execute(context.Background(), root, args)
	return code, out.String(), wrong.String()
}

func Example() {
	var s settings
	root := cli.Root(&cobra.Command{Use: "tool"}, cli.ReadBuild().Text("tool"))
	root.AddCommand(cli.Command(&cobra.Command{Use: "count"}, os.LookupEnv, func(c *cobra.Command, _ []string) error {
		if s.Count > 5 {
			return errors.New("too many for today")
		}
		fmt.Fprintln(c.OutOrStdout(), "counted", s.Count)
		return nil
	}, &s))
	root.SetOut(os.Stdout)
	root.SetErr(os.Stdout)
	fmt.Println(cli.Execute(context.Background(), root, []string{"count", "--count", "3"}))
	fmt.Println(cli.Execute(context.Background(), root, []string{"count", "--count", "7"}))
	// Output:
	// counted 3
	// 0
	// tool: too many for today
	// 1
}

func TestExitCodeDistinguishesWrongUsageFromFailedWork(t *testing.T) {
	t.Parallel()
	errLost := errors.New("lost")
	for name, tc := range map[string]struct {
		args   []string
		err    error
		code   int
		stderr string
	}{
		"done":                   {[]string{"count"}, nil, cli.OK, ""},
		"work failed":            {[]string{"count"}, errLost, cli.Failed, "tool: lost\n"},
		"work names the command": {[]string{"count"}, fmt.Errorf("tool: count: %w", errLost), cli.Failed, "tool: count: lost\n"},
		"work saw a mistake":     {[]string{"count"}, cli.Usagef("a mistake: %w", errLost), cli.Usage, "tool: a mistake: lost\n"},
		"mistake inside":         {[]string{"count"}, fmt.Errorf("outside: %w", cli.Usagef("mistake")), cli.Usage, "tool: outside: mistake\n"},
		"reported":               {[]string{"count"}, cli.ErrReported, cli.Failed, ""},
		"reported with another":  {[]string{"count"}, errors.Join(errLost, cli.ErrReported), cli.Failed, ""},
		"unknown command":        {[]string{"nonsense"}, nil, cli.Usage, "tool: unknown command \"nonsense\" for \"tool\"\n"},
		"argument":               {[]string{"count", "x"}, nil, cli.Usage, "tool: unknown command \"x\" for \"tool count\"\n"},
		"flag without value":     {[]string{"count", "--count"}, nil, cli.Usage, "tool: flag needs an argument: --count: see tool count --help\n"},
		"flag that was meant":    {[]string{"count", "--cuont=2"}, nil, cli.Usage, "tool: unknown flag: --cuont: did you mean --count? see tool count --help\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := execute(func(*settings) error { return tc.err }, tc.args...)
			require.Equal(t, tc.code, code)
			require.Equal(t, tc.stderr, stderr)
			require.Empty(t, stdout)
		})
	}
}

func TestMistakesOfAllSettingsAreReportedTogetherAndNothingRuns(t *testing.T) {
	t.Parallel()
	ran := false
	code, _, stderr := execute(func(*settings) error { ran = true; return nil }, "count", "--count", "many", "--deep", "10")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, `--count: "many" is not a whole number`)
	require.Contains(t, stderr, "--deep: 10 is outside 1 to 9")
	require.False(t, ran)
}

func TestSettingsAreLoadedBeforeTheWork(t *testing.T) {
	t.Parallel()
	got := 0
	code, _, _ := execute(func(s *settings) error { got = s.Count; return nil }, "count", "--count=4")
	require.Equal(t, cli.OK, code)
	require.Equal(t, 4, got)
}

func TestSettingsOfAnInvalidTypeAreAnErrorAndNoPanic(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	root := cli.Command(&cobra.Command{Use: "tool"}, noEnv, func(*cobra.Command, []string) error { return nil }, settings{})
	cli.Root(root, "").SetErr(&stderr)
	require.Equal(t, cli.Usage, cli.Execute(t.Context(), root, nil))
	require.Contains(t, stderr.String(), "cli_test.settings is not a pointer")
}
