package docs_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFrontendExampleCanBeFollowed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	page, gateway := "127.0.0.1:"+freePort(t), "127.0.0.1:"+freePort(t)
	readme := filepath.Join(s.dir, "examples/12-frontend/README.md")
	data, err := os.ReadFile(readme)
	require.NoError(t, err)
	text := strings.NewReplacer("bin/gateway --dev", "bin/gateway --dev --listen "+gateway, "127.0.0.1:3000", page,
		"go run ./examples/12-frontend", "go run ./examples/12-frontend --nats nats://127.0.0.1:4222 --listen "+page+" --gateway http://"+gateway).Replace(string(data))
	require.NoError(t, os.WriteFile(readme, []byte(text), 0o600))
	require.Equal(t, 2, s.follow(readme))

	require.Contains(t, fetch(t, http.MethodGet, "http://"+page, ""), "<script type=\"module\" src=\"chat.js\">")
	require.Contains(t, fetch(t, http.MethodGet, "http://"+page+"/settings.json", ""), "http://"+gateway)
	require.Contains(t, fetch(t, http.MethodGet, "http://"+page+"/copilotkit/", ""), "make copilotkit-page", "it is not built here")
	run := `{"threadId":"chat-1","runId":"run-1","messages":[{"id":"m1","role":"user","content":"Spring sale"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`
	require.Eventually(t, func() bool {
		return strings.Contains(fetch(t, http.MethodGet, "http://"+gateway+"/agui/info", ""), "Studio")
	}, time.Minute, 50*time.Millisecond)
	require.Contains(t, fetch(t, http.MethodPost, "http://"+gateway+"/agui/Studio", run), `"type":"interrupt"`)
}

func TestGatewayPageHasTheCommandsOfTheFrontendExample(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../examples/12-frontend/README.md")
	require.NoError(t, err)
	compared := 0
	for _, b := range fenced(t, "gateway.md", "sh") {
		if strings.Contains(b.text, "12-frontend") {
			for line := range strings.Lines(b.text) {
				require.Contains(t, string(example), strings.TrimSuffix(strings.TrimSpace(line), " &"))
				compared++
			}
		}
	}
	require.Equal(t, 3, compared)
}

// TestConnectOfTheGatewayPageIsTheOneOfThePage, which the tests in Chromium load.
func TestConnectOfTheGatewayPageIsTheOneOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../examples/12-frontend/page/chat.js")
	require.NoError(t, err)
	compared := 0
	for _, b := range fenced(t, "gateway.md", "js") {
		if strings.Contains(b.text, "extends HttpAgent") {
			for line := range strings.Lines(b.text) {
				if line, _, _ = strings.Cut(strings.TrimSpace(line), " // "); strings.Contains(line, "viewer") {
					require.Contains(t, string(page), line)
					compared++
				}
			}
		}
	}
	require.Equal(t, 3, compared)
}

// fetch returns the body of a reply, as a page gets it.
func fetch(t *testing.T, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(data)
}
