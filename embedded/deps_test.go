package embedded_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServerIsLinkedOnlyWhereItRuns keeps the NATS server, 12 MB of a binary, out of every
// program that connects to a server elsewhere.
func TestServerIsLinkedOnlyWhereItRuns(t *testing.T) {
	t.Parallel()
	const module = "github.com/oneturn/oneturn"
	mayLink := []string{"embedded", "cmd/worker", "oneturntest", "examples/demo"}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./...")
	cmd.Dir, cmd.Stderr = "..", os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	packages := 0
	for line := range strings.Lines(string(out)) {
		path, deps, _ := strings.Cut(strings.TrimSpace(line), " ")
		path = strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
		packages++
		links := strings.Contains(deps, "github.com/nats-io/nats-server/")
		switch {
		case slices.Contains(mayLink, path):
			require.True(t, links, "%s does not link the server: remove it from the list", path)
		case !strings.HasPrefix(path, "internal/test/"):
			require.False(t, links, "%s links the NATS server: find the import with go list -deps ./%s", path, path)
		}
	}
	require.Greater(t, packages, 50)
}
