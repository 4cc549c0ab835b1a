package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// complete sends a conversation to a model and returns the status and the body of the reply.
func complete(t *testing.T, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	reply, err := transport.RoundTrip(r)
	require.NoError(t, err)
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return reply.StatusCode, string(data)
}

func TestModelsReplyByTheirScripts(t *testing.T) {
	t.Parallel()
	c := caseOf(t, `{"name": "m", "planner": {"replies": [{"json": {"n": 1.50}}, {"text": "hm"}, {"error": "down"}]}, "respond": {"replies": [{"text": "done"}]}}`)
	m, err := startModels(c)
	require.NoError(t, err)
	defer m.Close()
	const ask = `{"messages": [{"role": "system", "content": "rules"}, {"role": "user", "content": "do it"}]}`
	for _, want := range []string{`{\"n\": 1.50}`, `hm`} {
		status, body := complete(t, m.url+modelPath(plannerName), ask)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, want)
	}
	for _, want := range []string{"down", "call 4 of plan, the case has 3 replies"} {
		status, body := complete(t, m.url+modelPath(plannerName), ask)
		require.Equal(t, http.StatusInternalServerError, status)
		require.Contains(t, body, want)
	}
	_, body := complete(t, m.url+modelPath(responderTag), ask)
	require.Contains(t, body, "done")
	status, _ := complete(t, m.url+modelPath(responderTag), "no JSON")
	require.Equal(t, http.StatusBadRequest, status)

	var o Observed
	m.observe(&o)
	require.Equal(t, map[string]int{"plan": 4, "respond": 1}, o.AICalls)
	require.Empty(t, o.verify(map[string]any{
		"planner_saw": []any{"rules", "do it"}, "planner_system_lacks": "do it", "respond_saw": "do it",
		"ai_calls": map[string]any{"plan": json.Number("4")},
	}))
}

func TestMCPToolsRecordTheirRunsAndReturnTheirResults(t *testing.T) {
	t.Parallel()
	c := caseOf(t, `{"name": "m", "tools": {"search": {"behaviour": {"do": "mcp", "result": {"content": [{"type": "text", "text": "x"}], "structuredContent": {"hits": 12}}}}}}`)
	path := t.TempDir() + "/" + fileLedger
	ledger, err := openLedger(path)
	require.NoError(t, err)
	defer ledger.Close()
	server, url, err := startMCP(c, ledger)
	require.NoError(t, err)
	defer server.Close()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	transport := &http.Transport{DisableKeepAlives: true}
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: transport}}, nil)
	require.NoError(t, err)
	defer session.Close()
	result, err := session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{
		Name: "search", Arguments: map[string]any{"q": "x"},
		Meta: mcp.Meta{"oneturn/call": "turn-1#0", "oneturn/epoch": 2, "oneturn/fencing_token": "7", "oneturn/idempotency_key": "k"},
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"hits": 12}`, text(result.StructuredContent))
	entries, err := readLedger(path)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	e := entries[0]
	require.Equal(t, []any{"search", "turn-1#0", "k", uint64(7), 2}, []any{e.Tool, e.Call, e.Key, e.Token, e.Epoch})
	require.JSONEq(t, `{"q": "x"}`, string(e.Args))
	require.False(t, e.To.IsZero())
}
