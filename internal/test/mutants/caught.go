//go:build mutants

package mutants

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// violation is how a broken invariant stands in the output of a test of real workers.
var violation = regexp.MustCompile(`(?m)^.*: (?:after \[.*\]: )?([IG]\d+ .*)$`)

// limit bounds one run of a test.
const limit = 2 * time.Minute

// RequireOverlay fails a test in a build without the overlay, in which no fault can be planted.
func RequireOverlay(t *testing.T) {
	t.Helper()
	require.True(t, Overlaid, "built without -overlay: run make mutants, make mutants-chaos or make gateway-mutants")
}

// EachIsCaught runs the tests of a suite, which has to be the calling package, again: each as it is, which has to pass,
// and with the fault planted that it has to find.
func EachIsCaught(t *testing.T, suite string) {
	t.Helper()
	RequireOverlay(t)
	for _, f := range CaughtIn(suite) {
		run, _ := f.Test(suite)
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			out, err := again(t, "", "-test.v", "-test.run="+run)
			require.NoError(t, err, "without a planted fault:\n%s", out)
			require.Contains(t, string(out), "--- PASS", "no test %s", run)
			out, err = again(t, f.Name, "-test.v", "-test.run="+run)
			require.Error(t, err, "not caught by %s", run)
			require.Contains(t, string(out), "--- FAIL", "it failed in another way:\n%s", out)
		})
	}
}

// CatchIn does the same with the tests of real processes, suite [Crash], [Chaos] or [Gateways], which have to report a violation of an
// invariant: a run that fails in another way proves nothing.
func CatchIn(t *testing.T, suite string) {
	t.Helper()
	RequireOverlay(t)
	sound := map[string]bool{}
	for _, f := range CaughtIn(suite) {
		test, _ := f.Test(suite)
		args := []string{"-test.run=" + test, "-crash.hits=1"}
		switch suite {
		case Chaos:
			args = []string{"-test.run=^TestChaos$/^round-1$/^" + test + "$", "-chaos.seed=1"}
		case Gateways:
			test = "TestGatewayChaos"
			args = []string{"-test.run=^" + test + "$", "-gateway.duration=10s", "-gateway.patience=20s", "-gateway.sockets=24", "-gateway.runs=6", "-gateway.binary=../../../bin/mutants/gateway"}
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			out, err := again(t, f.Name, args...)
			found := violation.FindSubmatch(out)
			require.Error(t, err, "not caught by %s", test)
			require.NotNil(t, found, "%s failed, but not by a violation:\n%s", test, out)
			t.Logf("caught by %s: %s", test, found[1])
		})
		if sound[test] {
			continue
		}
		sound[test] = true
		t.Run("without/"+test, func(t *testing.T) {
			t.Parallel()
			out, err := again(t, "", args...)
			require.NoError(t, err, "without a planted fault:\n%s", out)
		})
	}
}

// again runs tests of this binary with a fault planted, "" for none.
func again(t *testing.T, fault string, args ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(ctx, self, append([]string{"-test.count=1", "-test.timeout=" + limit.String()}, args...)...)
	c.Env = append(os.Environ(), Variable+"="+fault)
	out, err := c.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("%s: %w", args[0], err)
	}
	return out, nil
}
