package docs_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
)

func TestModelOfTheAgentsPageSortsMail(t *testing.T) {
	t.Parallel()
	var asked []byte
	var key string
	llm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ = io.ReadAll(r.Body)
		key = r.Header.Get("Authorization")
		answer, _ := json.Marshal(`{"queue":"returns","urgent":true}`)
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":%s},"finish_reason":"stop"}]}`, answer)
	}))
	t.Cleanup(llm.Close)
	root := folderOf(t, "agents.md")
	manifest := filepath.Join(root, "Office/oneturn.yaml")
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	here := strings.Replace(string(text), "https://llm.example.com/v1/chat/completions", llm.URL+"/v1/chat/completions\n      allow_http: true\n      allow_private: [127.0.0.0/8]", 1)
	require.NoError(t, os.WriteFile(manifest, []byte(here), 0o600))
	write(t, root, "Office/llm.token", "example\n")

	r, err := serve(t, oneturn.Config{Workflows: root}).Do(t.Context(), &oneturn.Turn{
		TurnID: oneturn.TurnID{Chat: "c", Turn: "t"}, Workflow: "Office", Agent: "Sorter", Model: "Mail",
		Data: map[string]any{"prompt": "It came broken."},
	})
	require.NoError(t, err)
	require.True(t, r.Success, r.Content)
	require.Equal(t, map[string]any{"queue": "returns", "urgent": true}, r.Payload)
	require.Equal(t, "Bearer example", key)
	body, err := events.Decode(asked)
	require.NoError(t, err)
	request, ok := body.(map[string]any)
	require.True(t, ok)
	require.Equal(t, json.Number("500"), request["max_tokens"])
	require.Contains(t, string(asked), `"strict":true`)
	require.Contains(t, string(asked), `{"role":"user","content":"It came broken."}`)
}

func TestAgentsOfThePageHaveTheEffectsThatItNames(t *testing.T) {
	t.Parallel()
	root := folderOf(t, "agents.md")
	write(t, root, "Office/llm.token", "example")
	effects := map[string]bindings.Effect{}
	for _, b := range load(t, root).Bindings() {
		if b.Workflow != "Office" {
			continue
		}
		require.Equal(t, bindings.KindAgent, b.Kind)
		effects[b.Tool] = b.Effect
	}
	require.Equal(t, map[string]bindings.Effect{"agent:triage": bindings.EffectNone, "agent:writer": bindings.EffectIdempotent}, effects)
}

func TestPlannerAndResponderOfTheAgentsPageArePythonFunctions(t *testing.T) {
	t.Parallel()
	root := folderOf(t, "agents.md")
	write(t, root, "Office/llm.token", "example\n")
	r, err := serve(t, oneturn.Config{Workflows: root}).Do(t.Context(), &oneturn.Turn{
		TurnID: oneturn.TurnID{Chat: "c", Turn: "t"}, Workflow: "Visit", Agent: "Guide", Data: map[string]any{"prompt": "A hotel in Oslo"},
	})
	require.NoError(t, err)
	require.True(t, r.Success, r.Content)
	require.Contains(t, r.Content, "A hotel in Oslo: 1 call.\n1. find - SUCCESS\n   Result: {\n     \"hotels\": [\n       \"Fjord Inn\"\n     ]\n   }")
}
