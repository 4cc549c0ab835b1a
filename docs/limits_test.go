package docs_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

func knownUser(_ context.Context, call tool.CallInfo, _ map[string]any) error {
	if call.UserID == "" {
		return tool.Refuse("a refund requires a known user")
	}
	return nil
}

func refundTool(refund func(context.Context, refundOrder) (string, error)) oneturn.Tool {
	return oneturn.NewTool("refund", refund, oneturn.ToolOptions{
		Workflow: "Shop", Agent: "Clerk", Model: "Refund",
		CheckCall: knownUser,
		Limits:    oneturn.Limits{Tool: oneturn.Limit{Concurrency: 4, Rate: oneturn.Rate{Calls: 10, Per: time.Second}}},
	})
}

type refundOrder struct {
	Order  string  `json:"order"`
	Amount float64 `json:"amount"`
	Note   string  `json:"note,omitempty"`
}

type searchQuery struct {
	Text string `json:"text"`
}

// runShop runs a worker and returns a function that publishes a turn and waits for its end.
func runShop(t *testing.T, c oneturn.Config) func(turn, agent, model string, data map[string]any) *oneturn.Response {
	t.Helper()
	s := oneturntest.NewServer(t)
	s.Provision()
	w, err := oneturn.NewWorker(s.Connect(), c)
	require.NoError(t, err)
	require.Empty(t, w.Bindings().Diagnostics())
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	client, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	return func(turn, agent, model string, data map[string]any) *oneturn.Response {
		return do(t, client, &oneturn.Turn{
			TurnID: oneturn.TurnID{App: "acme", Chat: "c", Turn: turn}, Workflow: "Shop", Agent: agent, Model: model, Data: data,
		})
	}
}

func TestManifestOfTheLimitsPageDoesWhatItDocuments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "Shop/oneturn.yaml", fenced(t, "limits.md", "yaml")[0].text)
	var refunds, searches atomic.Int32
	result := "done"
	shop := runShop(t, oneturn.Config{Workflows: dir, SoftStop: time.Millisecond, Tools: []oneturn.Tool{
		oneturn.NewTool("refund", func(_ context.Context, in refundOrder) (string, error) {
			refunds.Add(1)
			if in.Note == "long" {
				return strings.Repeat("x", 5000), nil
			}
			return result, nil
		}, oneturn.ToolOptions{}),
		oneturn.NewTool("search", func(_ context.Context, in searchQuery) (string, error) {
			searches.Add(1)
			return "found " + in.Text, nil
		}, oneturn.ToolOptions{}),
	}})
	refund := func(turn, order, amount, note string) *oneturn.Response {
		return shop(turn, "Clerk", "Refund", map[string]any{"order": order, "amount": json.Number(amount), "note": note})
	}
	require.True(t, refund("fine", "A-1", "1000", "").Success)
	for turn, c := range map[string]struct{ order, amount, note, content string }{
		"large":  {"A-1", "1000.5", "", "refunds over 1000 are made by people"},
		"order":  {"B", "1", "", "/order"},
		"secret": {"A-1", "1", "AK" + "IA" + strings.Repeat("A1", 8), "an AWS access key at /note"},
		"long":   {"A-1", "1", "long", "the result may take"},
	} {
		r := refund(turn, c.order, c.amount, c.note)
		require.Equal(t, events.CodeGuardrail, r.Code, turn)
		require.Contains(t, r.Content, c.content, turn)
	}
	require.EqualValues(t, 2, refunds.Load())

	for i, turn := range []string{"first", "second"} {
		r := shop(turn, "Finder", "Query", map[string]any{"text": "shoes"})
		require.True(t, r.Success)
		require.Equal(t, "found shoes", r.Payload)
		require.Equal(t, 1-i, r.Attempts)
	}
	require.EqualValues(t, 1, searches.Load())
}

func TestGoGuardOfTheLimitsPageRefuses(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("limits_test.go")
	require.NoError(t, err)
	require.Contains(t, string(source), fenced(t, "limits.md", "go")[0].text)
	shop := runShop(t, oneturn.Config{SoftStop: time.Millisecond, Tools: []oneturn.Tool{
		refundTool(func(context.Context, refundOrder) (string, error) { return "done", nil }),
	}})
	r := shop("t", "Clerk", "Refund", map[string]any{"order": "A-1", "amount": json.Number("1")})
	require.Equal(t, events.CodeGuardrail, r.Code)
	require.Contains(t, r.Content, "a refund requires a known user")
}

func TestFunctionsOfTheLimitsPageAreThere(t *testing.T) {
	t.Parallel()
	page := strings.Join(strings.Fields(text(t, "limits.md")), " ")
	for _, f := range []string{"any", "len", "sum", "count", "lower", "hasPrefix"} {
		require.Contains(t, guards.Functions(), f)
		require.Contains(t, page, f)
	}
}
