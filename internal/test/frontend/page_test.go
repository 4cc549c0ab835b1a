//go:build frontend

package frontend_test

import (
	"flag"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
)

var update = flag.Bool("update", false, "write the pictures of docs/images")

// picture returns the setting that makes a test in Node write a picture, if pictures are updated.
func picture(t *testing.T, name string) string {
	t.Helper()
	if !*update {
		return "ONETURN_PICTURE="
	}
	file, err := filepath.Abs("../../../docs/images/" + name)
	require.NoError(t, err)
	return "ONETURN_PICTURE=" + file
}

func TestPageShowsAnswersAndRecoversInABrowser(t *testing.T) {
	t.Parallel()
	s := newStage(t, harness.NewServer(t), true)
	node(t, "page.test.mjs", append(s.settings, picture(t, "frontend.png"))...)
}

func TestCopilotKitShowsAnswersAndRecoversInABrowser(t *testing.T) {
	t.Parallel()
	require.FileExists(t, "../../../examples/12-frontend/copilotkit/dist/index.html", "run make gateway-test")
	s := newStage(t, harness.NewServer(t), true)
	node(t, "copilotkit.test.mjs", append(s.settings, picture(t, "copilotkit.png"))...)
}

// TestCodeOfTheGatewayPageRunsInNode runs what docs/gateway.md shows of WebSockets and of AG-UI's client.
func TestCodeOfTheGatewayPageRunsInNode(t *testing.T) {
	t.Parallel()
	s := newStage(t, harness.NewServer(t), true)
	node(t, "snippets.test.mjs", append(s.settings, "NODE_OPTIONS=--experimental-websocket")...) // for Node 20
}

func TestBundleOfThePageIsMadeOfTheLockedPackages(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "node", "bundle.mjs", "--check").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
