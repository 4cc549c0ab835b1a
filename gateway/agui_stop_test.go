package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
)

// stopRun posts a stop request for a run of chat c, or for all that runs in it, and returns the status.
func (g *gate) stopRun(base, run string) int {
	g.Helper()
	named := map[string]any{"runId": run}
	if run == "" {
		delete(named, "runId")
	}
	body, err := json.Marshal(named)
	require.NoError(g, err)
	r, err := http.NewRequestWithContext(g.Context(), http.MethodPost, base+"/agui/agent/Shop/stop/c", strings.NewReader(string(body)))
	require.NoError(g, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer ada")
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(g, err)
	require.NoError(g, response.Body.Close())
	return response.StatusCode
}

func TestRunStopsOnTheGatewayThatHasIt(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	_, other := g.replica(quick)
	g.lists(other.URL)
	s := g.run(g.http.URL, "ada", "/agui/Shop", input("r1", nil, "order"))
	s.until(agui.TypeRunStarted)
	require.Equal(t, http.StatusNotFound, g.stopRun(other.URL, "another"))
	require.Equal(t, http.StatusAccepted, g.stopRun(other.URL, "r1"))
	require.Equal(t, "cancelled", outcome(s.end()), "%v", s.events)
	_, later := g.replica(quick)
	g.lists(later.URL)
	for _, base := range []string{later.URL, g.http.URL, other.URL} {
		next := g.run(base, "ada", "/agui/Shop", input("next", nil, "order", "another"))
		require.Equal(t, http.StatusOK, next.status, "the message of the run that was stopped does not keep the next one away")
		next.cancel()
	}
}

func TestStopEndsRunsAndConnectsWithOneIdOnAllGateways(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	_, other := g.replica(quick)
	g.lists(other.URL)
	for _, again := range []string{"/agui/Shop/connect", "/agui/Shop"} {
		s := g.run(other.URL, "ada", "/agui/Shop", input("r1", nil, "order"))
		s.until(agui.TypeRunStarted)
		g.stored("order")
		here := g.run(g.http.URL, "ada", again, input("r1", nil, "order"))
		here.until(agui.TypeMessagesSnapshot)
		require.Equal(t, http.StatusAccepted, g.stopRun(g.http.URL, "r1"))
		require.Equal(t, "cancelled", outcome(here.end()), "%v", here.events)
		require.Equal(t, "cancelled", outcome(s.end()), "the run of the other gateway: %v", s.events)
	}
}

func TestStopOfAChatEndsTheRunsWhoseMessageWaitsOnAllGateways(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	_, other := g.replica(quick)
	_, third := g.replica(quick)
	g.lists(other.URL)
	g.lists(third.URL)
	for _, at := range []string{g.http.URL, third.URL} {
		messages := []string{"order"}
		if at == third.URL {
			messages = append(messages, "another")
		}
		s := g.run(g.http.URL, "ada", "/agui/Shop", input("r1", nil, messages...))
		s.until(agui.TypeRunStarted)
		g.stored(messages[len(messages)-1])
		attached := g.run(other.URL, "ada", "/agui/Shop", input("r2", nil, messages...))
		attached.until(agui.TypeRunStarted)
		connected := g.run(other.URL, "ada", "/agui/Shop/connect", input("show", nil))
		connected.until(agui.TypeMessagesSnapshot)
		require.Equal(t, http.StatusAccepted, g.stopRun(at, ""), "at %s", at)
		require.Equal(t, "cancelled", outcome(s.end()), "%v", s.events)
		require.Equal(t, "cancelled", outcome(attached.end()), "%v", attached.events)
		require.Equal(t, http.StatusNotFound, g.stopRun(at, ""), "nothing waits any more, and a connect is not a run")
		connected.cancel()
	}
	for i, base := range []string{g.http.URL, other.URL, third.URL} {
		next := g.run(base, "ada", "/agui/Shop", input("next", nil, "order", "another", "third"))
		require.Equal(t, http.StatusOK, next.status, "the message of the run that was stopped does not keep the next one away from gateway %d", i)
		next.cancel()
	}
}

func TestStopOfAChatReleasesAMessageWhoseClientHasLeft(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	require.Equal(t, http.StatusNotFound, g.stopRun(g.http.URL, ""))
	s := g.run(g.http.URL, "ada", "/agui/Shop", input("r1", nil, "order"))
	s.until(agui.TypeRunStarted)
	g.stored("order")
	s.cancel()
	require.Equal(t, http.StatusAccepted, g.stopRun(g.http.URL, ""))
	require.Equal(t, http.StatusNotFound, g.stopRun(g.http.URL, ""))
	next := g.run(g.http.URL, "ada", "/agui/Shop", input("r3", nil, "order", "another"))
	require.Equal(t, http.StatusOK, next.status)
	next.cancel()
}

// stored waits until a message of Ada is in chat c.
func (g *gate) stored(message string) {
	g.Helper()
	require.Eventually(g, func() bool {
		return strings.Contains(string(g.get("ada", "/api/chats/app/c/events").body), `"m-`+message+`"`)
	}, 20*time.Second, 50*time.Millisecond)
}

func TestGatewayThatStartsLaterRefusesTheNextMessageWhileARunWaits(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	s := g.run(g.http.URL, "ada", "/agui/Shop", input("r1", nil, "order"))
	s.until(agui.TypeRunStarted)
	g.stored("order")
	_, later := g.replica(quick)
	g.lists(later.URL)
	status, code := g.run(later.URL, "ada", "/agui/Shop", input("r2", nil, "order", "another")).refused()
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, "run_in_progress", code)
}

func TestStopOfAConnectEndsItAlone(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	g.asks()
	g.turn("c", "slow", "ada", "Waiter", "Order", map[string]any{"item": "lamp"})
	require.Eventually(t, func() bool {
		return strings.Contains(string(g.get("ada", "/api/chats/app/c/events").body), `"turn":"slow"`)
	}, 20*time.Second, 20*time.Millisecond)
	s := g.run(g.http.URL, "ada", "/agui/Shop/connect", input("show", func(in map[string]any) {
		in["tools"] = []any{map[string]any{"name": "Approval", "description": "", "parameters": map[string]any{}}}
	}))
	s.until(agui.TypeMessagesSnapshot)
	require.Equal(t, http.StatusAccepted, g.stopRun(g.http.URL, "show"))
	require.Equal(t, "cancelled", outcome(s.end()), "%v", s.events)
	require.NotContains(t, string(g.get("ada", "/api/chats/app/c/events").body), "tool_call_cancel")
	require.Contains(t, string(g.get("ada", "/api/chats/app/c/waits").body), "asks/1", "the question stays open")
	require.Equal(t, http.StatusAccepted, g.post("ada", "/api/chats/app/c/cancel", map[string]any{"turn": "slow"}).status)
}
