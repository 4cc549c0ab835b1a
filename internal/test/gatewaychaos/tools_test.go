//go:build chaos

package gatewaychaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/test/gatewaychaos"
)

// The tools are a NATS service in the test process, so workers and gateways are the commands as they are released.

const (
	workflow = "Chaos"
	talk     = "Talk" // a workflow of texts, some of which people do not see
	manifest = `
workflow: Chaos
agents: {Worker: {}, Clerk: {}, Painter: {}, Sleeper: {}, Planner: {}}
tools:
  - {name: work, agent: Worker, schema: &any {type: object}, nats: {service: chaos, endpoint: work}, timeout: 6s, max_attempts: 5}
  - {name: ask, agent: Clerk, schema: *any, nats: {service: chaos, endpoint: ask}, effect: replay, timeout: 6s, max_attempts: 5}
  - {name: paint, agent: Painter, schema: *any, nats: {service: chaos, endpoint: paint}, effect: replay, timeout: 10s, max_attempts: 5}
  - {name: sleep, agent: Sleeper, schema: *any, nats: {service: chaos, endpoint: sleep}, effect: none, timeout: 40s, max_attempts: 5}
  - {name: run_plan, kind: plan, agent: Planner, uses: [step, confirm]}
  - {name: step, auto: false, input: *any, nats: {service: chaos, endpoint: work}, effect: none, timeout: 6s, max_attempts: 5}
  - {name: confirm, auto: false, input: *any, nats: {service: chaos, endpoint: ask}, effect: replay, timeout: 6s, max_attempts: 5}
`
)

// writeWorkflows writes the manifests of the workers.
func writeWorkflows(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		workflow + "/oneturn.yaml":  manifest,
		talk + "/orchestrator.yaml": "workflow_name: Talk",
		talk + "/agents.yaml":       "agents: {Speaker: {}, Background: {}}",
		talk + "/ui_config.yaml":    "visual_agents: [Speaker]",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// input is the input of all tools.
type input struct {
	Millis int `json:"millis"`
	Count  int `json:"count"` // questions of ask, pictures of paint
	Size   int `json:"size"`  // bytes of a picture
}

// toolCall is the request of a worker.
type toolCall struct {
	nc *nats.Conn
	r  micro.Request
}

// errHost is an error that the worker has replied: the call is parked, cancelled or over.
var errHost = errors.New("the call has ended")

// serveTools serves the tools until the connection closes.
func serveTools(t *testing.T, nc *nats.Conn) {
	t.Helper()
	service, err := micro.AddService(nc, micro.Config{Name: "chaos", Version: "1.0.0"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = service.Stop() })
	for name, do := range map[string]func(context.Context, *toolCall, input) (any, error){"work": work, "ask": ask, "paint": paint, "sleep": sleep} {
		handler := micro.HandlerFunc(func(r micro.Request) {
			go func() { // ends with the call, which has a limit
				c := &toolCall{nc, r}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				var in input
				err := json.Unmarshal(r.Data(), &in)
				var out any
				if err == nil {
					out, err = do(ctx, c, in)
				}
				if err == nil {
					err = r.RespondJSON(out)
				}
				if err != nil {
					_ = r.Error("500", err.Error(), nil) // the worker may be gone
				}
			}()
		})
		require.NoError(t, service.AddEndpoint(name, handler, micro.WithEndpointSubject("chaos."+name)))
	}
}

// work takes a while, and reports progress, which is not stored.
func work(ctx context.Context, c *toolCall, in input) (any, error) {
	for percent := range 3 {
		c.progress(30 * percent)
		if err := pause.For(ctx, time.Duration(in.Millis)*time.Millisecond/3); err != nil {
			return nil, err
		}
	}
	return map[string]any{"status": "success", "millis": in.Millis}, nil
}

// ask asks one question after the other.
func ask(ctx context.Context, c *toolCall, in input) (any, error) {
	approved := 0
	for n := range max(1, in.Count) {
		var reply struct {
			Value struct {
				Approved bool `json:"approved"`
			} `json:"value"`
		}
		err := c.toHost(ctx, "ask", map[string]any{
			"name": fmt.Sprint("q", n), "tool": "approve", "component": "Approval", "display": "artifact", "payload": map[string]any{"message": "May I?", "n": n},
			"schema": json.RawMessage(`{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}`),
		}, &reply)
		if err != nil {
			return nil, err
		}
		if reply.Value.Approved {
			approved++
		}
	}
	return map[string]any{"status": "success", "approved": approved}, nil
}

// paint displays pictures.
func paint(ctx context.Context, c *toolCall, in input) (any, error) {
	for n := range in.Count {
		err := c.toHost(ctx, "show", map[string]any{
			"name": fmt.Sprint("p", n), "tool": "picture", "component": "Picture", "payload": map[string]any{"n": n, "pixels": strings.Repeat("x", in.Size)},
		}, nil)
		if err != nil {
			return nil, err
		}
	}
	return map[string]any{"status": "success"}, nil
}

// sleep runs until it is cancelled.
func sleep(ctx context.Context, c *toolCall, _ input) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	c.progress(1)
	err := c.toHost(ctx, "end", nil, nil)
	return map[string]any{"status": "success", "woken": err != nil}, nil
}

func (c *toolCall) progress(percent int) {
	m := nats.NewMsg(c.r.Reply())
	m.Header.Set("Oneturn-Kind", "progress")
	m.Data = fmt.Appendf(nil, `{"percent": %d, "message": "at it"}`, percent)
	_ = c.nc.PublishMsg(m) // it may be lost
}

// toHost sends an operation to the worker that has the call, and waits for the outcome.
func (c *toolCall) toHost(ctx context.Context, kind string, body, reply any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	m := nats.NewMsg(c.r.Reply())
	m.Header.Set("Oneturn-Kind", kind)
	m.Data = data
	answer, err := c.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	if code := answer.Header.Get("Oneturn-Error-Code"); code != "" {
		return fmt.Errorf("%s: %w: %s", kind, errHost, code)
	}
	if reply == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Data, reply); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

// turnOf returns the turn that follows from a message, by its text: the kind of what the user wants.
func turnOf(m *gatewaychaos.Message) *oneturn.Turn {
	turn := &oneturn.Turn{TurnID: oneturn.TurnID{App: m.App, Chat: m.Chat, Turn: "reply-" + m.ID}, Workflow: workflow, UserID: m.User}
	kind, _, _ := strings.Cut(m.Text, " ")
	switch kind {
	case "ask":
		turn.Agent, turn.Data = "Clerk", map[string]any{"count": 1 + len(m.ID)%2}
	case "paint":
		turn.Agent, turn.Data = "Painter", map[string]any{"count": 3, "size": 500}
	case "gallery":
		turn.Agent, turn.Data = "Painter", map[string]any{"count": 12, "size": 30_000}
	case "sleep":
		turn.Agent, turn.Data = "Sleeper", map[string]any{}
	case "plan":
		turn.Agent, turn.Data = "Planner", map[string]any{"type": "tool_calls", "calls": []any{
			map[string]any{"tool_name": "step", "arguments": map[string]any{"millis": 50}},
			map[string]any{"tool_name": "confirm", "arguments": map[string]any{"count": 1}},
			map[string]any{"tool_name": "step", "arguments": map[string]any{"millis": 20}},
		}}
	default:
		turn.Agent, turn.Data = "Worker", map[string]any{"millis": 20 + 37*len(m.ID)%200}
	}
	return turn
}
