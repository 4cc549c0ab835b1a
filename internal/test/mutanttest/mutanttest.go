//go:build mutants

package mutanttest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/mutant"
)

// EachIsCaught runs tests of the calling package again, each as it is, which has to pass, and with the fault planted
// that it has to find. Tests are named as -test.run takes them.
func EachIsCaught(t *testing.T, tests map[mutant.Name]string) {
	t.Helper()
	for name, run := range tests {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			out, err := again(t, run, "")
			require.NoError(t, err, "without a planted fault:\n%s", out)
			require.Contains(t, string(out), "--- PASS", "no test %s", run)
			out, err = again(t, run, name)
			require.Error(t, err, "not caught by %s", run)
			require.Contains(t, string(out), "--- FAIL", "it failed in another way:\n%s", out)
		})
	}
}

func again(t *testing.T, run string, planted mutant.Name) ([]byte, error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self, "-test.count=1", "-test.v", "-test.timeout=1m", "-test.run="+run)
	c.Env = append(os.Environ(), mutant.Variable+"="+string(planted))
	return c.CombinedOutput()
}
