//go:build frontend

package frontend_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

type order struct {
	Item string `json:"item"`
}

type decision struct {
	Status string `json:"status"`
}

// shop has the tools of the tests.
type shop struct {
	mu       sync.Mutex
	runs     map[string]int           // of packing, by item
	released map[string]chan struct{} // when packing of an item may end
}

func quote(_ context.Context, in order) (string, error) { return in.Item + " costs 7", nil }

func approve(ctx context.Context, in order) (string, error) {
	d, err := tool.Ask[decision](ctx, tool.Question{Tool: "approve", Component: "Approval", Display: "artifact", Payload: in})
	return "decided: " + d.Status, err
}

// pack runs until it is released or cancelled.
func (s *shop) pack(ctx context.Context, in order) (string, error) {
	s.mu.Lock()
	s.runs[in.Item]++
	s.mu.Unlock()
	select {
	case <-s.release(in.Item):
		return in.Item + " is packed", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (s *shop) release(item string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released[item] == nil {
		s.released[item] = make(chan struct{})
	}
	return s.released[item]
}

func (s *shop) config() oneturn.Config {
	return oneturn.Config{Logger: slog.New(slog.DiscardHandler), Tools: []oneturn.Tool{
		oneturn.NewTool("quote", quote, oneturn.ToolOptions{Workflow: "Shop", Agent: "Seller", Model: "Order"}),
		oneturn.NewTool("approve", approve, oneturn.ToolOptions{Workflow: "Shop", Agent: "Clerk", Model: "Order", Effect: oneturn.Replay}),
		oneturn.NewTool("pack", s.pack, oneturn.ToolOptions{Workflow: "Shop", Agent: "Packer", Model: "Order"}),
	}}
}

// serve returns the address of what the tests in Node ask the tools for: POST /release/{item}, and GET /runs/{item}.
func (s *shop) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /release/{item}", func(_ http.ResponseWriter, r *http.Request) { close(s.release(r.PathValue("item"))) })
	mux.HandleFunc("GET /runs/{item}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprint(w, s.runs[r.PathValue("item")])
	})
	served := httptest.NewServer(mux)
	t.Cleanup(served.Close)
	return served.URL
}

// orchestrate publishes a turn for each message of a user: the text is the agent and an item. Its key is
// not the id of the message, which would be the id of its call too.
func orchestrate(t *testing.T, server *oneturntest.Server) {
	t.Helper()
	client, nc := harness.NewClient(t, server), server.Connect()
	_, err := nc.Subscribe("oneturn.events.*.*.*.*.text", func(m *nats.Msg) {
		var event struct {
			Data struct {
				MessageID string `json:"message_id"`
				App       string `json:"app_id"`
				Chat      string `json:"chat_id"`
				User      string `json:"user_id"`
				Content   string `json:"content"`
			}
		}
		if !assertJSON(t, m.Data, &event) {
			return
		}
		agent, item, _ := strings.Cut(event.Data.Content, " ")
		_, err := client.Publish(context.Background(), &oneturn.Turn{
			TurnID: oneturn.TurnID{App: event.Data.App, Chat: event.Data.Chat, Turn: "reply-" + event.Data.MessageID}, Workflow: "Shop", UserID: event.Data.User,
			Agent: agent, Model: "Order", Data: order{item},
		})
		if err != nil {
			t.Errorf("publish a turn: %v", err)
		}
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
}

func assertJSON(t *testing.T, data []byte, v any) bool {
	t.Helper()
	err := json.Unmarshal(data, v)
	if err != nil {
		t.Errorf("%s: %v", data, err)
	}
	return err == nil
}

// ada is the user of all requests.
type ada struct{}

func (ada) Authenticate(_ context.Context, r auth.Request) (*auth.Identity, error) {
	if r.Token != "ada" {
		return nil, &auth.Error{Code: auth.CodeTokenInvalid, Msg: "not a token"}
	}
	return &auth.Identity{Apps: []string{"app"}, User: "ada"}, nil
}

// startGateway starts a gateway, and waits until it knows the workflow.
func startGateway(t *testing.T, server *oneturntest.Server) string {
	t.Helper()
	made, err := gateway.New(t.Context(), gateway.Options{
		NATS: server.Connect(), Auth: ada{}, Settle: 300 * time.Millisecond, Limits: gateway.Limits{Rate: -1, RunRate: -1}, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	served := httptest.NewServer(made)
	t.Cleanup(func() {
		made.Close()
		served.Close()
	})
	waitForWorkflow(t, served.URL, "Shop")
	return served.URL
}

// waitForWorkflow waits until a gateway lists a workflow.
func waitForWorkflow(t *testing.T, gateway, workflow string) {
	t.Helper()
	require.Eventually(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gateway+"/agui/info", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer ada")
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		var info struct {
			Agents map[string]any `json:"agents"`
		}
		return json.NewDecoder(response.Body).Decode(&info) == nil && info.Agents[workflow] != nil
	}, 2*time.Minute, 50*time.Millisecond)
}

// node runs tests in Node, with settings in the environment.
func node(t *testing.T, file string, settings ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test-reporter=spec", "--test", file)
	cmd.Env = append(os.Environ(), settings...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	require.Regexp(t, `pass [1-9]`, string(out), "no test ran")
}

func TestClientsOfBothGenerationsRunReloadAndResumeOnAnyGateway(t *testing.T) {
	t.Parallel()
	require.FileExists(t, "node_modules/.package-lock.json", "run make gateway-test")
	server := harness.NewServer(t)
	tools := &shop{runs: map[string]int{}, released: map[string]chan struct{}{}}
	harness.StartWorker(t, server, tools.config())
	orchestrate(t, server)
	node(t, "clients.test.mjs", "ONETURN_GATEWAYS="+startGateway(t, server)+" "+startGateway(t, server), "ONETURN_TOOLS="+tools.serve(t))
}
