package main

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReportHasALineForEachCaseAndFailsIfOneDoes(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"--parallel", "3", "x"})
	require.NoError(t, err)
	var out bytes.Buffer
	good := []Result{{name: "a"}, {name: "b", leftOut: "no people"}}
	require.NoError(t, o.report(&out, slices.Values(good)))
	require.Equal(t, "a ok\nb left out: no people\n1 passed, 0 failed, 1 left out\n", out.String())
	out.Reset()
	require.Error(t, o.report(&out, slices.Values(append(good, Result{name: "c", failures: []string{"x", "y"}}, Result{name: "d", unnoticed: []string{"status"}}))))
	require.Contains(t, out.String(), "c FAIL\n    x\n    y\nd FAIL\n    a change of the expectation status is not noticed\n1 passed, 2 failed, 1 left out\n")
}

func TestCommandRefusesWhatItCannotRun(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"name a folder": {}, "--run": {"--run", "(", "testdata"}, "--parallel": {"--parallel", "0", "testdata"},
		"no case matches": {"--run", "nothing like it", "testdata"}, "no such file": {"no/such/folder"}, "flags": {"--depth"},
	} {
		require.ErrorContains(t, run(t.Context(), args, &bytes.Buffer{}), want)
	}
}

func TestCaseThatIsLeftOutIsNotRun(t *testing.T) {
	t.Parallel()
	o := &options{parallel: 1}
	const fault = `"faults": [{"at": "in_tool", "do": "pause"}]`
	cases := []Case{*caseOf(t, `{"name": "x", `+fault+`}`), *caseOf(t, `{"name": "y", `+fault+`}`)}
	got := slices.Collect(o.results(context.WithoutCancel(t.Context()), cases))
	const why = "the runner cannot do pause at in_tool of epoch 0"
	require.Equal(t, []Result{{name: "x", leftOut: why}, {name: "y", leftOut: why}}, got)
}

func TestCaseOfACheckIsRunWithoutAWorker(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--falsify", "--run", "checked-without-running", "testdata"}, &out), out.String())
	require.Equal(t, "plan-checked-without-running ok\n1 passed, 0 failed, 0 left out\n", out.String())
}
