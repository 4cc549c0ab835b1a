package hostile_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
)

// agentsManifest is a workflow with a planner and a responder at %[1]s, the latter of them as an HTTP tool.
const agentsManifest = `
agents: {Guide: {}, Asker: {}}
tools:
- {name: planned, kind: plan, agent: Guide, uses: [find], planner: model}
- {name: asked, kind: plan, agent: Asker, uses: [find], respond: endpoint}
- {name: find, http: {url: "%[1]s/find", allow_http: true, allow_private: [127.0.0.1/32]}, auto: false, effect: none}
- name: model
  auto: false
  timeout: %[2]s
  completion: {url: "%[1]s/model", model: small, allow_http: true, allow_private: [127.0.0.1/32]}
- name: endpoint
  auto: false
  timeout: %[2]s
  effect: none
  http: {url: "%[1]s/endpoint", allow_http: true, allow_private: [127.0.0.1/32]}
`

// repeat writes a text for as long as the client reads, at most n times.
func repeat(w io.Writer, text string, n int, pause time.Duration, ended <-chan struct{}) {
	for range n {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		if f, ok := w.(http.Flusher); ok && pause > 0 {
			f.Flush()
		}
		select {
		case <-ended:
			return
		case <-time.After(pause):
		}
	}
}

// H27: see docs/faults.md. The test is not parallel, because it measures what the process allocates.
func TestH27EndpointsOfPlannersAndRespondersEndTheirTurnInTime(t *testing.T) { //nolint:paralleltest // see above
	const short = 300 * time.Millisecond
	megabyte := strings.Repeat("a", 1<<20)
	for name, c := range map[string]struct { //nolint:paralleltest // see above
		limit   time.Duration // of an agent
		answer  func(w http.ResponseWriter, r *http.Request)
		code    events.Code
		message string
	}{
		"100 MB": {time.Minute, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(100<<20))
			repeat(w, megabyte, 100, 0, r.Context().Done())
		}, events.CodeTooLarge, "too large"},
		"100 MB without a length": {time.Minute, func(w http.ResponseWriter, r *http.Request) {
			repeat(w, megabyte, 100, 0, r.Context().Done())
		}, events.CodeTooLarge, "too large"},
		"events": {time.Minute, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/model" { // a tool may have a stream of events for an answer, a model has not
				w.Header().Set("Content-Type", "text/event-stream")
			}
			repeat(w, strings.Repeat("data: {}\n\n", 100_000), 100, 0, r.Context().Done())
		}, events.CodeTooLarge, "too large"},
		"a byte at a time": {short, func(w http.ResponseWriter, r *http.Request) {
			repeat(w, " ", 1<<20, 50*time.Millisecond, r.Context().Done())
		}, events.CodeTimeout, "did not end within 300ms"},
		"no end": {short, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, events.CodeTimeout, "did not end within 300ms"},
		"no answer": {short, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, events.CodeTimeout, "did not end within 300ms"},
		"a redirect to a private address": {time.Minute, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.2:1/latest", http.StatusTemporaryRedirect)
		}, events.CodeToolError, "leads to a loopback address, which is refused"},
		"a redirect to itself": {time.Minute, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, events.CodeToolError, "the redirect is not followed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/find" {
					_, _ = io.WriteString(w, `{}`)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that its client is gone
				w.Header().Set("Content-Type", "application/json")
				c.answer(w, r)
			}))
			t.Cleanup(s.Close)
			root := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(root, "Trip"), 0o750))
			require.NoError(t, os.WriteFile(filepath.Join(root, "Trip/oneturn.yaml"), fmt.Appendf(nil, agentsManifest, s.URL, c.limit), 0o600))
			l := newLabOn(t, oneturntest.NewServer(t, oneturntest.Memory), oneturn.Config{Workflows: root})
			for agent, data := range map[string]map[string]any{
				"Guide": {"prompt": "Find me a hotel."},
				"Asker": {"type": "tool_calls", "calls": []any{map[string]any{"tool_name": "find", "arguments": map[string]any{}}}},
			} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r := l.ends(&oneturn.Turn{TurnID: oneturn.TurnID{App: "app", Chat: agent, Turn: "t"}, Workflow: "Trip", Agent: agent, Data: data})
				runtime.ReadMemStats(&after)
				require.Equal(t, c.code, r.Code, "%s: %s", agent, r.Content)
				require.Contains(t, r.Content, c.message, agent)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxMemory), agent)
			}
		})
	}
}
