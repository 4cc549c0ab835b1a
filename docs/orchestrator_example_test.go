package docs_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOrchestratorInPythonAnswersWhatUsersWrite also while it did not run.
func TestOrchestratorInPythonAnswersWhatUsersWrite(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	gateway := "127.0.0.1:" + freePort(t)
	client, err := filepath.Abs("../clients/python")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "clients"), 0o700))
	require.NoError(t, os.Symlink(client, filepath.Join(s.dir, "clients/python")))
	readme := filepath.Join(s.dir, "examples/13-orchestrator/README.md")
	data, err := os.ReadFile(readme)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(readme, []byte(strings.Replace(string(data), "bin/gateway --dev", "bin/gateway --dev --listen "+gateway, 1)), 0o600))
	require.Equal(t, 2, s.follow(readme))

	_, rest, _ := strings.Cut(string(data), " -d '")
	body, _, _ := strings.Cut(rest, "'")
	require.Contains(t, fetch(t, http.MethodPost, "http://"+gateway+"/agui/Studio", body), `"type":"interrupt"`)

	last := s.services[len(s.services)-1]
	require.Contains(t, strings.Join(last.cmd.Args, " "), "orchestrator.py")
	last.end(syscall.SIGKILL)
	s.run("bin/publisher message chat-2 'Summer sale' --workflow Studio --user ada --id m2")
	s.service("PYTHONPATH=clients/python python3 examples/13-orchestrator/orchestrator.py &")
	require.Eventually(t, func() bool {
		return strings.Contains(fetch(t, http.MethodGet, "http://"+gateway+"/api/chats/default/chat-2/waits", ""), `"post-m2/1"`)
	}, time.Minute, 50*time.Millisecond)
}

func TestOrchestratorOfTheGatewayPageIsTheExample(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../examples/13-orchestrator/orchestrator.py")
	require.NoError(t, err)
	shown := fenced(t, "gateway.md", "python")
	require.Len(t, shown, 1)
	require.Contains(t, string(example), shown[0].text)
}
