package docs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

// TestCommandsThatStartAGatewayAreComplete runs them: they fail only because there is no server.
func TestCommandsThatStartAGatewayAreComplete(t *testing.T) {
	t.Parallel()
	ran := 0
	for _, page := range []string{"gateway.md", "operations.md"} {
		for _, b := range fenced(t, page, "sh") {
			for line := range strings.Lines(b.text) {
				args := strings.Fields(line)
				if len(args) == 0 || args[0] != "gateway" {
					continue
				}
				got, code := output(t, command(t, "", "gateway", append(args[1:], "--nats", "nats://127.0.0.1:1")...))
				require.Equal(t, 1, code, got)
				require.Contains(t, got, "connect to nats://127.0.0.1:1", line)
				ran++
			}
		}
	}
	require.GreaterOrEqual(t, ran, 3)
}

func TestFileOfTokensOfThePageIsReadAndItsCommandMakesAHash(t *testing.T) {
	t.Parallel()
	shown := fenced(t, "gateway.md", "yaml")
	require.Len(t, shown, 1)
	var command string
	for _, b := range fenced(t, "gateway.md", "sh") {
		if strings.HasPrefix(b.text, "token=$(openssl ") {
			command = b.text
		}
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", strings.Replace(command, "openssl rand -hex 24", "echo t0ken", 1)).Output()
	require.NoError(t, err)
	sum := sha256.Sum256([]byte("t0ken"))
	require.Contains(t, string(out), "t0ken\n"+hex.EncodeToString(sum[:]))

	dir := t.TempDir()
	write(t, dir, "tokens.yaml", strings.Replace(shown[0].text, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", hex.EncodeToString(sum[:]), 1))
	now := func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }
	tokens, err := auth.OpenTokens(auth.StaticConfig{Path: filepath.Join(dir, "tokens.yaml"), Now: now})
	require.NoError(t, err)
	id, err := tokens.Authenticate(t.Context(), auth.Request{Token: "t0ken"})
	require.NoError(t, err)
	require.Equal(t, []string{"acme"}, id.Apps)
	require.Equal(t, "ada", id.User)
	require.Equal(t, []string{"Studio", "Generator"}, id.Workflows)
	require.Equal(t, []string{"chat-1"}, id.Chats)
}

// TestAnswerOfThePageFindsItsQuestionWithDev and is not found or refused without the tenant or the user.
func TestAnswerOfThePageFindsItsQuestionWithDev(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	at := "127.0.0.1:" + freePort(t)
	s.start("bin/worker --workflows examples/02-approval/workflows --park-after 1s")
	s.service("bin/gateway --dev --listen " + at + " &")
	s.run(`bin/publisher publish - <<'END'
{"agent": "ApprovalAgent", "model_name": "Post", "auto_tool_mode": true, "structured_data": {"title": "t", "body": "b", "agent_message": "May I?"},` +
		` "turn_idempotency_key": "post-m1", "context": {"app_id": "acme", "chat_id": "chat-1", "workflow_name": "Studio", "user_id": "ada"}}
END`)
	require.Eventually(t, func() bool {
		return strings.Contains(fetch(t, http.MethodGet, "http://"+at+"/api/chats/acme/chat-1/waits", ""), `"post-m1/1"`)
	}, time.Minute, 50*time.Millisecond)
	shown := fenced(t, "gateway.md", "json")
	require.Len(t, shown, 1)
	answer := func(without string) string {
		body := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(shown[0].text), &body))
		delete(body, without)
		data, err := json.Marshal(body)
		require.NoError(t, err)
		return fetch(t, http.MethodPost, "http://"+at+"/api/tool-call/respond", string(data))
	}
	require.Contains(t, answer("app_id"), `"unknown"`)
	require.Contains(t, answer("user_id"), `"forbidden"`)
	require.Contains(t, answer(""), `"accepted"`)
}
