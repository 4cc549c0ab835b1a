package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// callers are authenticators of tests: the token is the key.
type callers map[string]auth.Identity

func (c callers) Authenticate(_ context.Context, r auth.Request) (*auth.Identity, error) {
	if r.Token == "" {
		return nil, &auth.Error{Code: auth.CodeTokenMissing, Msg: "no token"}
	}
	id, ok := c[r.Token]
	if !ok {
		return nil, &auth.Error{Code: auth.CodeTokenInvalid, Msg: "not a token"}
	}
	return &id, nil
}

func people() callers {
	return callers{
		"ada":     {Apps: []string{"app"}, User: "ada"},
		"bob":     {Apps: []string{"app"}, User: "bob"},
		"eve":     {Apps: []string{"other"}, User: "ada"},
		"service": {Apps: []string{"app"}, User: "backend", Roles: []auth.Role{auth.RoleService}},
		"narrow":  {Apps: []string{"app"}, User: "ada", Workflows: []string{"Hello"}},
	}
}

type order struct {
	Item string `json:"item"`
}

type decision struct {
	Status string `json:"status"`
}

func approve(ctx context.Context, in order) (string, error) {
	d, err := tool.Ask[decision](ctx, tool.Question{Tool: "approve", Component: "Approval", Display: "artifact", Payload: in})
	return "decided: " + d.Status, err
}

// large returns more than an event holds.
func large(context.Context, order) (map[string]string, error) {
	return map[string]string{"text": strings.Repeat("x", 700<<10)}, nil
}

// waiter works until its turn is cancelled.
func waiter(ctx context.Context, _ order) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// chat displays so many pieces as its turn asks for.
func pieces(ctx context.Context, in struct {
	Count int `json:"count"`
	Size  int `json:"size,omitempty"`
},
) (string, error) {
	for i := range in.Count {
		if _, err := tool.Show(ctx, tool.Surface{Tool: "piece", Component: "Piece", Payload: map[string]any{"i": i, "text": strings.Repeat("x", in.Size)}}); err != nil {
			return "", err
		}
	}
	return "shown", nil
}

func shop() oneturn.Config {
	c := harness.Greeter()
	c.Logger = slog.New(slog.DiscardHandler)
	c.Tools = append(c.Tools,
		oneturn.NewTool("approve", approve, oneturn.ToolOptions{Workflow: "Shop", Agent: "Clerk", Model: "Order", Effect: oneturn.Replay}),
		oneturn.NewTool("wait", waiter, oneturn.ToolOptions{Workflow: "Shop", Agent: "Waiter", Model: "Order", Effect: oneturn.Replay}),
		oneturn.NewTool("large", large, oneturn.ToolOptions{Workflow: "Shop", Agent: "Printer", Model: "Order"}),
		oneturn.NewTool("pieces", pieces, oneturn.ToolOptions{Workflow: "Shop", Agent: "Pieces", Model: "Pieces"}),
	)
	return c
}

// gate is a server, a gateway and what a test does with them.
type gate struct {
	*testing.T

	server  *oneturntest.Server
	client  *oneturn.Client
	nc      *nats.Conn
	gateway *gateway.Gateway
	http    *httptest.Server
}

// open starts a gateway without workers.
func open(t *testing.T, change ...func(*gateway.Options)) *gate {
	t.Helper()
	server := harness.NewServer(t)
	g := &gate{T: t, server: server, client: harness.NewClient(t, server), nc: server.Connect()}
	g.gateway, g.http = g.replica(change...)
	return g
}

// runWorker runs a worker until it is stopped.
func (g *gate) runWorker() (stop func()) {
	g.Helper()
	w, err := oneturn.NewWorker(g.server.Connect(), shop())
	require.NoError(g, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(g, <-done)
	}
}

// replica starts another gateway on the same server.
func (g *gate) replica(change ...func(*gateway.Options)) (*gateway.Gateway, *httptest.Server) {
	g.Helper()
	o := gateway.Options{NATS: g.server.Connect(), Auth: people(), Limits: gateway.Limits{Rate: -1}, Origins: []string{"https://app.example"}}
	for _, f := range change {
		f(&o)
	}
	made, err := gateway.New(g.Context(), o)
	require.NoError(g, err)
	served := httptest.NewServer(made)
	g.Cleanup(func() {
		made.Close()
		served.Close()
	})
	return made, served
}

// openShop starts a gateway and a worker.
func openShop(t *testing.T) *gate {
	t.Helper()
	return openShopWith(t)
}

func openShopWith(t *testing.T, change ...func(*gateway.Options)) *gate {
	t.Helper()
	g := open(t, change...)
	harness.StartWorker(t, g.server, shop())
	return g
}

func (g *gate) turn(chat, key, user, agent, model string, data any) *oneturn.Turn {
	g.Helper()
	t := &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: chat, Turn: key}, Workflow: "Shop", Agent: agent, Model: model, UserID: user, Data: data,
	}
	harness.Publish(g.T, g.client, t)
	return t
}

// ask publishes turn t of chat c, which asks Ada, and returns the id of its question.
func (g *gate) ask() string {
	g.Helper()
	g.turn("c", "t", "ada", "Clerk", "Order", map[string]any{"item": "lamp"})
	var found struct{ Waits []map[string]any }
	require.Eventually(g, func() bool {
		r := g.get("service", "/api/chats/app/c/waits")
		r.into(&found)
		return len(found.Waits) > 0
	}, 20*time.Second, 20*time.Millisecond)
	return text(found.Waits[0]["tool_call_id"])
}

// await waits for the response of a turn.
func (g *gate) await(t *oneturn.Turn) { harness.Await(g.T, g.client, t.TurnID) }

// text is a text of an event, "" if it is not one; object is an object, nil if it is not one.
func text(v any) string {
	s, _ := v.(string)
	return s
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// reply is the reply to a request.
type reply struct {
	*testing.T

	status int
	header http.Header
	body   []byte
}

// code is the code of a JSON reply.
func (r *reply) code() string {
	r.Helper()
	var body struct{ Code string }
	r.into(&body)
	return body.Code
}

func (r *reply) into(v any) {
	r.Helper()
	require.NoError(r, json.Unmarshal(r.body, v), string(r.body))
}

func (g *gate) get(token, path string, header ...string) *reply {
	return g.do("GET", token, path, nil, header...)
}

func (g *gate) post(token, path string, body any) *reply {
	data, err := json.Marshal(body)
	require.NoError(g, err)
	return g.do("POST", token, path, data)
}

func (g *gate) do(method, token, path string, body []byte, header ...string) *reply {
	g.Helper()
	r, err := http.NewRequestWithContext(g.Context(), method, g.http.URL+path, bytes.NewReader(body))
	require.NoError(g, err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(g, err)
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	require.NoError(g, err)
	return &reply{g.T, got.StatusCode, got.Header, data}
}

// sock is the socket of a test.
type sock struct {
	*testing.T

	conn *websocket.Conn
}

// frame is a frame that the gateway sends.
type frame struct {
	Type     string         `json:"type"`
	Data     map[string]any `json:"data"`
	Sequence uint64         `json:"sequence"`
	Replay   bool           `json:"replay"`
}

// dial opens a socket, or returns the status of its refusal.
func (g *gate) dial(token, path string, header ...string) (s *sock, refused int) {
	g.Helper()
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	conn, response, err := websocket.Dial(g.Context(), g.http.URL+path, &websocket.DialOptions{HTTPHeader: h})
	if err != nil {
		require.NotNil(g, response, err)
		if response.Body != nil {
			require.NoError(g, response.Body.Close())
		}
		return nil, response.StatusCode
	}
	conn.SetReadLimit(4 << 20)
	g.Cleanup(func() { _ = conn.CloseNow() })
	return &sock{g.T, conn}, 0
}

// socket opens the socket of a user on a chat.
func (g *gate) socket(user, chat, query string) *sock {
	g.Helper()
	s, refused := g.dial(user, "/ws/Shop/app/"+chat+"/"+user+query)
	require.Zero(g, refused)
	return s
}

// read reads the next frame.
func (s *sock) read() (frame, error) {
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	_, data, err := s.conn.Read(ctx)
	if err != nil {
		return frame{}, err
	}
	var f frame
	require.NoError(s, json.Unmarshal(data, &f), string(data))
	return f, nil
}

// until reads frames up to one of a type, which it returns with those before.
func (s *sock) until(kind string) (found frame, before []frame) {
	s.Helper()
	for {
		f, err := s.read()
		require.NoError(s, err, "before a frame %s", kind)
		if f.Type == kind {
			return f, before
		}
		before = append(before, f)
	}
}

func (s *sock) send(v any) {
	s.Helper()
	data, err := json.Marshal(v)
	require.NoError(s, err)
	s.sendText(data)
}

func (s *sock) sendText(data []byte) {
	s.Helper()
	require.NoError(s, s.conn.Write(s.Context(), websocket.MessageText, data))
}

// closed reads until the gateway closes the socket.
func (s *sock) closed() (code websocket.StatusCode, reason string, frames []frame) {
	s.Helper()
	for {
		f, err := s.read()
		if err != nil {
			var c websocket.CloseError
			require.ErrorAs(s, err, &c)
			return c.Code, c.Reason, frames
		}
		frames = append(frames, f)
	}
}

// interview makes a folder with a workflow of MozaiksAI whose agents write texts: one ends with a hidden text, one is in the
// background.
func interview(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "Interview"), 0o700))
	for name, text := range map[string]string{
		"orchestrator.yaml": "workflow_name: Interview",
		"agents.yaml":       "agents: {Interviewer: {}, Background: {}}",
		"ui_config.yaml":    "visual_agents: [Interviewer]",
		"context_variables.yaml": `
definitions:
  complete:
    type: boolean
    source: {type: state, default: false, triggers: [{type: agent_text, agent: Interviewer, match: {equals: NEXT}, ui_hidden: true}]}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "Interview", name), []byte(text), 0o600))
	}
	return dir
}
