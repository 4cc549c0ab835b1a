package planner_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/agent"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/oneturntest"
)

// asks returns an Ask that calls a tool.
func asks(tool tools.Invoker) planner.Ask {
	return func(ctx context.Context, r planner.Request) (json.RawMessage, error) {
		call := &tools.Call{Name: "agent:planner", CallID: "turn", IdempotencyKey: "key", Attempt: 1}
		r.Put(call)
		result, err := tool.Invoke(ctx, call)
		return result.Value, err
	}
}

func TestModelPlansAndAnswers(t *testing.T) {
	t.Parallel()
	var keys, temperatures []string
	replies := []string{"I will look it up.", "```json\n" + goodPlan + "\n```", "Label printed."}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // requests come one after the other
		var body struct {
			Temperature json.RawMessage `json:"temperature"`
		}
		data, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(data, &body)
		content, _ := json.Marshal(replies[len(keys)])
		keys, temperatures = append(keys, r.Header.Get("Idempotency-Key")), append(temperatures, string(body.Temperature))
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":`+string(content)+`},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(web.Close)
	tool := agent.New(&target.Agent{ID: "planner", Completions: &target.Completions{
		URL: web.URL + "/v1/chat/completions", Model: "small",
		Network: target.Network{AllowHTTP: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}}, agent.Options{})
	t.Cleanup(func() { require.NoError(t, tool.Close(context.WithoutCancel(t.Context()))) })

	planned, err := shop(t, flow.KindPlan).Plan(t.Context(), asks(tool))
	require.NoError(t, err)
	require.Equal(t, 2, planned.Asked)
	responder := planner.Responder{Summary: planner.PlanSummary(run(planned.Program, false))}
	reply, err := asks(tool)(t.Context(), responder.Request())
	require.NoError(t, err)
	content, err := planner.Content(reply)
	require.NoError(t, err)
	require.Equal(t, "Label printed.", content)
	require.Equal(t, []string{"key", "key-2", "key"}, keys)
	require.Equal(t, []string{"0", "0", ""}, temperatures)
}

func TestServiceOnNATSPlans(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	service := s.Connect()
	var seen []map[string]any
	_, err := service.Subscribe("agents.planner", func(m *nats.Msg) { // requests come one after the other
		var args map[string]any
		_ = json.Unmarshal(m.Data, &args)
		reply := badSteps
		if seen = append(seen, args); len(seen) > 1 {
			reply = goodSteps
		}
		_ = m.Respond([]byte(reply))
	})
	require.NoError(t, err)
	require.NoError(t, service.Flush())
	tool := natstool.New(&target.NATS{Subject: "agents.planner"}, natstool.Options{Conn: s.Connect()})
	t.Cleanup(func() { require.NoError(t, tool.Close(context.WithoutCancel(t.Context()))) })
	p := shop(t, flow.KindOrchestration)
	p.Input.Prompt = strings.Repeat("\n\"", 30<<10) // as large as it may be
	planned, err := p.Plan(t.Context(), asks(tool))
	require.NoError(t, err)
	require.Len(t, planned.Program.Steps, 1)
	require.JSONEq(t, goodSteps, string(planned.Reply))
	request, _ := seen[0]["request"].(map[string]any)
	require.Equal(t, p.Input.Prompt, request["request"])
	require.Equal(t, map[string]any{"number": "1709"}, request["bindings"])
	require.Len(t, request["agents"], 2)
	require.Contains(t, seen[0], "schema")
	require.Contains(t, seen[0]["system"], "exactly one JSON object")
	require.Len(t, seen[0]["messages"], 1)
	require.Len(t, seen[1]["messages"], 3)
}
