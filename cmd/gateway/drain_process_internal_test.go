package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// mainVariable makes the test binary the command.
const mainVariable = "GATEWAY_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		return
	}
	oneturntest.VerifyNoLeaks(m)
}

// launched is a gateway in a process.
type launched struct {
	*testing.T

	start  start
	cmd    *exec.Cmd
	stderr harness.Output
}

func launch(t *testing.T, args ...string) *launched {
	t.Helper()
	l := &launched{T: t, cmd: exec.CommandContext(t.Context(), os.Args[0], append([]string{"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "-o", "json"}, args...)...)}
	l.cmd.Env, l.cmd.Stderr = append(os.Environ(), mainVariable+"=1"), &l.stderr
	out, err := l.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, l.cmd.Start())
	require.NoError(t, json.NewDecoder(out).Decode(&l.start), "%s", &l.stderr)
	return l
}

// post sends JSON, and returns the status and the body.
func (l *launched) post(path string, body any) (int, string) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, err.Error()
	}
	r, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.start.URL+path, bytes.NewReader(data))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, err.Error()
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, err.Error()
	}
	return got.StatusCode, string(text)
}

// dial opens a socket of Ada on a chat.
func (l *launched) dial(chat string) *websocket.Conn {
	l.Helper()
	conn, response, err := websocket.Dial(l.Context(), l.start.URL+"/ws/Shop/app/"+chat+"/ada", nil)
	require.NoError(l, err)
	if response.Body != nil {
		_ = response.Body.Close()
	}
	l.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

// heard is what a socket has received until it was closed.
type heard struct {
	acks   map[string]int // status of what was sent, by its id
	closed string         // code and reason
	err    error
}

// hear reads the frames of a socket to its end. It reports the boundary and each ack.
func hear(ctx context.Context, conn *websocket.Conn, next chan<- struct{}, got chan<- heard) {
	h := heard{acks: map[string]int{}}
	defer func() {
		close(next)
		got <- h
	}()
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			var c websocket.CloseError
			if !errors.As(err, &c) {
				h.err = err
			}
			h.closed = fmt.Sprint(int(c.Code), " ", c.Reason)
			return
		}
		var f struct {
			Type string `json:"type"`
			Data struct {
				Status     int    `json:"status"`
				MessageID  string `json:"message_id"`
				ToolCallID string `json:"tool_call_id"`
			} `json:"data"`
		}
		if err := json.Unmarshal(data, &f); err != nil {
			h.err = err
			return
		}
		switch {
		case strings.HasPrefix(f.Type, "ack."):
			h.acks[f.Data.MessageID+f.Data.ToolCallID] = f.Data.Status
			next <- struct{}{}
		case f.Type == "chat.resume_boundary":
			next <- struct{}{}
		}
	}
}

// write sends messages of the user, each after the ack of the one before, until the socket ends.
func write(ctx context.Context, conn *websocket.Conn, name string, next <-chan struct{}) {
	for i := 0; ; i++ {
		frame := fmt.Sprintf(`{"type":"user.input.submit","text":"hello","message_id":"%s-%d"}`, name, i)
		err := conn.Write(ctx, websocket.MessageText, []byte(frame))
		if _, open := <-next; !open || err != nil {
			for range next { // until it is closed
			}
			return
		}
	}
}

// approvals runs a worker whose tool asks, until it is stopped.
func approvals(t *testing.T, server *oneturntest.Server) (stop func()) {
	t.Helper()
	c := harness.Greeter()
	c.Logger = slog.New(slog.DiscardHandler)
	c.Tools = append(c.Tools, oneturn.NewTool("approve", func(ctx context.Context, _ struct{}) (bool, error) {
		return tool.Ask[bool](ctx, tool.Question{Tool: "approve", Component: "Approval"})
	}, oneturn.ToolOptions{Workflow: "Shop", Agent: "Clerk", Model: "Order", Effect: oneturn.Replay}))
	w, err := oneturn.NewWorker(server.Connect(), c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// A gateway that gets a SIGTERM while sockets write, a run waits and answers are on their way: everything that it has accepted is
// stored, every answer gets its verdict, and each client is closed with the reason.
func TestGatewayThatStopsUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	server := harness.NewServer(t)
	stop := approvals(t, server)
	client := harness.NewClient(t, server)
	l := launch(t, "--nats", server.URL(), "--dev", "--rate", "0", "--tenant-rate", "0", "--log-level", "warn")
	nc := server.Connect()
	stored, err := nc.SubscribeSync("oneturn.events.app.>")
	require.NoError(t, err)
	require.NoError(t, stored.SetPendingLimits(-1, -1))
	answers, err := nc.SubscribeSync("oneturn.in.default.tool_call_response.>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())

	// Questions: two of them are answered while no worker decides.
	var asked []string
	for _, chat := range []string{"one", "two", "load"} {
		harness.Publish(t, client, &oneturn.Turn{TurnID: oneturn.TurnID{App: "app", Chat: chat, Turn: "t"}, Workflow: "Shop", Agent: "Clerk", Model: "Order", UserID: "ada", Data: map[string]any{}})
		require.Eventually(t, func() bool {
			page, err := client.Questions(t.Context(), oneturn.QuestionFilter{App: "app", Chat: chat})
			require.NoError(t, err)
			for _, q := range page.Questions {
				asked = append(asked, q.ToolCallID)
			}
			return len(page.Questions) > 0
		}, 20*time.Second, 20*time.Millisecond)
	}
	require.Eventually(t, func() bool { // the worker announces its workflows meanwhile
		_, body := l.post("/agui/Shop/stop/one", map[string]any{"runId": "none"})
		return !strings.Contains(body, "unknown_workflow")
	}, 20*time.Second, 20*time.Millisecond)
	stop()
	verdict := make(chan string, 1)
	go func() {
		code, body := l.post("/api/tool-call/respond", map[string]any{"app_id": "app", "chat_id": "one", "user_id": "ada", "tool_call_id": asked[0], "response": true})
		verdict <- fmt.Sprint(code, " ", body)
	}()
	socketVerdict := make(chan heard, 1)
	conn := l.dial("two")
	next := make(chan struct{}, 2)
	go hear(t.Context(), conn, next, socketVerdict)
	<-next
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"type":"tool_call_response","tool_call_id":%q,"response":true}`, asked[1])))
	for range 2 {
		_, err := answers.NextMsg(20 * time.Second)
		require.NoError(t, err)
	}

	// A run that waits for its first turn, and sockets that write.
	end := make(chan string, 1)
	began := make(chan struct{})
	go l.run(began, end)
	const sockets = 10
	all := make(chan heard, sockets)
	<-began
	for i := range sockets {
		conn, next := l.dial("load"), make(chan struct{}, 2)
		go hear(t.Context(), conn, next, all)
		<-next
		go write(t.Context(), conn, strconv.Itoa(i), next)
	}
	for range 100 {
		_, err := nc.Request("$JS.API.INFO", nil, 10*time.Second) // the load runs meanwhile
		require.NoError(t, err)
	}
	require.NoError(t, l.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool { return status(t, l.start.HTTP+"/readyz") == http.StatusServiceUnavailable }, 5*time.Second, 5*time.Millisecond)
	acks := map[string]bool{}
	for range sockets {
		h := <-all
		require.NoError(t, h.err)
		require.Equal(t, "1001 drain", h.closed, "%s", &l.stderr)
		for id, code := range h.acks {
			if code == http.StatusOK || code == http.StatusAccepted { // stored, or published
				acks[id] = true
			}
		}
	}
	require.GreaterOrEqual(t, len(acks), sockets)
	require.Contains(t, <-end, `"code":"unavailable"`, "a clean end would look like success")
	require.Equal(t, http.StatusServiceUnavailable, status(t, l.start.HTTP+"/readyz"), "the answers are still waited for")
	defer approvals(t, server)()
	require.Contains(t, <-verdict, `"accepted"`)
	h := <-socketVerdict
	require.Equal(t, "1001 drain", h.closed, "%s", &l.stderr)
	require.Equal(t, map[string]int{asked[1]: http.StatusOK}, h.acks)
	require.NoError(t, l.cmd.Wait(), "%s", &l.stderr)
	requireStored(t, stored, acks)
}

// run starts a run of AG-UI, and sends its last line.
func (l *launched) run(began chan<- struct{}, end chan<- string) {
	last := ""
	defer func() { end <- last }()
	body := `{"threadId":"run","runId":"r","messages":[{"id":"m","role":"user","content":"hello"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`
	r, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.start.URL+"/agui/Shop", strings.NewReader(body))
	if err != nil {
		close(began)
		return
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "X-App-Id": {"app"}}
	got, err := http.DefaultTransport.RoundTrip(r)
	close(began)
	if err != nil {
		last = err.Error()
		return
	}
	defer got.Body.Close()
	for lines := bufio.NewScanner(got.Body); lines.Scan(); {
		if lines.Text() != "" {
			last = lines.Text()
		}
	}
}

// requireStored waits until messages of users are stored.
func requireStored(t *testing.T, stored *nats.Subscription, ids map[string]bool) {
	t.Helper()
	for len(ids) > 0 {
		m, err := stored.NextMsg(30 * time.Second)
		require.NoError(t, err, "%d messages are lost", len(ids))
		var e struct {
			Data struct {
				MessageID string `json:"message_id"`
			} `json:"data"`
		}
		require.NoError(t, json.Unmarshal(m.Data, &e))
		delete(ids, e.Data.MessageID)
	}
}
