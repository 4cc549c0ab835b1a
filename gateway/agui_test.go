package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/test/harness"
)

// stream is a run of AG-UI that a test reads.
type stream struct {
	*testing.T

	status int
	lines  *bufio.Scanner
	cancel context.CancelFunc
	events []map[string]any
}

// input returns the input of a run with messages of the user.
func input(run string, change func(map[string]any), messages ...string) map[string]any {
	list := []any{}
	for _, text := range messages {
		list = append(list, map[string]any{"id": "m-" + text, "role": "user", "content": text})
	}
	in := map[string]any{
		"threadId": "c", "runId": run, "protocolVersion": "1.0", "messages": list, "tools": []any{}, "context": []any{}, "state": map[string]any{}, "forwardedProps": map[string]any{},
	}
	if change != nil {
		change(in)
	}
	return in
}

func resume(entries ...map[string]any) func(map[string]any) {
	return func(in map[string]any) { in["resume"] = entries }
}

// run starts a run, or posts another input to a path.
func (g *gate) run(base, token, path string, in any) *stream {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
	g.Cleanup(cancel)
	data, err := json.Marshal(in)
	require.NoError(g, err)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, strings.NewReader(string(data)))
	require.NoError(g, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(g, err)
	g.Cleanup(func() { _ = response.Body.Close() })
	s := &stream{T: g.T, status: response.StatusCode, lines: bufio.NewScanner(response.Body), cancel: cancel}
	s.lines.Buffer(nil, 16<<20)
	return s
}

// next returns the next event, nil at the end of the stream.
func (s *stream) next() map[string]any {
	s.Helper()
	for s.lines.Scan() {
		data, ok := strings.CutPrefix(s.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e map[string]any
		require.NoError(s, json.Unmarshal([]byte(data), &e))
		s.events = append(s.events, e)
		return e
	}
	return nil
}

// until reads up to an event of a type.
func (s *stream) until(kind agui.EventType) map[string]any {
	s.Helper()
	for {
		e := s.next()
		require.NotNil(s, e, "the stream ended before %s: %v", kind, s.events)
		if e["type"] == string(kind) {
			return e
		}
	}
}

// end reads to the end, and returns the last event.
func (s *stream) end() map[string]any {
	s.Helper()
	for s.next() != nil { //nolint:revive // read to the end
	}
	require.NotEmpty(s, s.events, "an empty stream, status %d", s.status)
	return s.events[len(s.events)-1]
}

// refused reads the code of a refusal.
func (s *stream) refused() (int, string) {
	s.Helper()
	var text strings.Builder
	for s.lines.Scan() {
		text.WriteString(s.lines.Text())
	}
	var body struct {
		Code string `json:"code"`
	}
	require.NoError(s, json.Unmarshal([]byte(text.String()), &body), text.String())
	return s.status, body.Code
}

// quick makes runs end sooner than their default.
func quick(o *gateway.Options) { o.Settle = 300 * time.Millisecond }

// openAgent starts a gateway, and a worker that has the workflow Shop.
func openAgent(t *testing.T) *gate {
	t.Helper()
	g := open(t, quick)
	harness.StartWorker(t, g.server, shop())
	g.lists(g.http.URL)
	return g
}

// lists waits until a gateway knows the workflow Shop, which a worker has announced just now.
func (g *gate) lists(base string) {
	g.Helper()
	require.Eventually(g, func() bool {
		r, err := http.NewRequestWithContext(g.Context(), http.MethodPost, base+"/agui/Shop/stop/none", http.NoBody)
		require.NoError(g, err)
		r.Header.Set("Authorization", "Bearer service")
		response, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(g, err)
		defer response.Body.Close()
		var body struct {
			Code string `json:"code"`
		}
		require.NoError(g, json.NewDecoder(response.Body).Decode(&body))
		return body.Code == "not_running"
	}, 20*time.Second, 50*time.Millisecond)
}

func outcome(e map[string]any) string { return text(object(e["outcome"])["type"]) }

func TestRunEndsWithTheQuestionAndTheNextOneAnswersIt(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	first := g.run(g.http.URL, "ada", "/agui/Shop", input("r1", nil, "order"))
	require.Equal(t, string(agui.TypeRunStarted), first.next()["type"])
	turn := g.turn("c", "t", "ada", "Clerk", "Order", map[string]any{"item": "lamp"})
	end := first.end()
	require.Equal(t, "interrupt", outcome(end), "%v", end)
	open, ok := object(end["outcome"])["interrupts"].([]any)
	require.True(t, ok)
	require.Len(t, open, 1)
	id := text(object(open[0])["id"])
	require.Equal(t, "int_t/1", id)

	second := g.run(g.http.URL, "ada", "/agui/Shop", input("r2", resume(map[string]any{"interruptId": id, "status": "resolved", "payload": map[string]any{"status": "approved"}}), "order"))
	require.Equal(t, "success", outcome(second.end()), "%v", second.events)
	g.await(turn)
	again := g.run(g.http.URL, "ada", "/agui/Shop", input("r3", resume(map[string]any{"interruptId": id, "status": "resolved", "payload": map[string]any{"status": "approved"}}), "order"))
	require.Equal(t, "success", outcome(again.end()), "a repeated answer changes nothing")
}

func TestSecondMessageWaitsForTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	first := g.run(g.http.URL, "ada", "/agui/Shop", input("r1", nil, "order"))
	first.next()
	// The message waits for its turn: as the journal shows it, so on any gateway.
	_, other := g.replica(quick)
	g.lists(other.URL)
	require.Eventually(t, func() bool {
		return strings.Contains(string(g.get("ada", "/api/chats/app/c/events").body), "user_message")
	}, 20*time.Second, 50*time.Millisecond)
	status, code := g.run(other.URL, "ada", "/agui/Shop", input("r2", nil, "order", "another")).refused()
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, "run_in_progress", code)
	attached := g.run(other.URL, "ada", "/agui/Shop", input("r3", nil, "order"))
	require.Equal(t, http.StatusOK, attached.status, "the same message again is the same run")
	attached.next()
	g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 1})
	require.Equal(t, "success", outcome(first.end()))
	require.Equal(t, "success", outcome(attached.end()))
}

func TestConnectShowsAChatWithoutWorkersAndChangesNothing(t *testing.T) {
	t.Parallel()
	g := open(t, quick)
	stop := g.runWorker()
	g.lists(g.http.URL)
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 2}))
	g.asks()
	stop()
	for range 2 {
		s := g.run(g.http.URL, "ada", "/agui/Shop/connect", input("r1", nil, "not sent"))
		require.Equal(t, "interrupt", outcome(s.end()), "%v", s.events)
		require.Equal(t, string(agui.TypeMessagesSnapshot), s.events[1]["type"])
	}
	require.NotContains(t, string(g.get("ada", "/api/chats/app/c/events").body), "user_message")
}

// asks publishes a turn that asks.
func (g *gate) asks() {
	g.Helper()
	g.turn("c", "asks", "ada", "Clerk", "Order", map[string]any{"item": "lamp"})
	require.Eventually(g, func() bool {
		return strings.Contains(string(g.get("ada", "/api/chats/app/c/waits").body), "asks/1")
	}, 20*time.Second, 20*time.Millisecond)
}

func TestRunRefusesWhatIsNotItsUsers(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 0}))
	for _, tc := range []struct {
		token, path, code string
		status            int
	}{
		{"bob", "/agui/Shop", "forbidden", http.StatusForbidden},
		{"bob", "/agui/Shop/connect", "forbidden", http.StatusForbidden},
		{"bob", "/agui/agent/Shop/stop/c", "forbidden", http.StatusForbidden},
		{"narrow", "/agui/Shop", "forbidden", http.StatusForbidden},
		{"nobody", "/agui/Shop", "token_invalid", http.StatusUnauthorized},
		{"", "/agui/Shop/connect", "token_missing", http.StatusUnauthorized},
		{"ada", "/agui/None", "unknown_workflow", http.StatusNotFound},
	} {
		s := g.run(g.http.URL, tc.token, tc.path, input("r", nil, "hello"))
		status, code := s.refused()
		require.Equal(t, tc.status, status, "%+v", tc)
		require.Equal(t, tc.code, code, "%+v", tc)
	}
	eve := g.run(g.http.URL, "eve", "/agui/Shop/connect", input("r", nil))
	eve.end()
	require.Len(t, eve.events, 2, "another tenant's chat of that id is empty: %v", eve.events)
}

func TestTokenOfSeveralTenantsNamesTheOneOfARun(t *testing.T) {
	t.Parallel()
	several := people()
	several["both"] = auth.Identity{Apps: []string{"other", "app"}, User: "ada"}
	g := openShopWith(t, func(o *gateway.Options) { o.Auth = several })
	g.lists(g.http.URL)
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 1}))
	body, err := json.Marshal(input("r", nil))
	require.NoError(t, err)
	for path, want := range map[string]int{
		"/agui/Shop/connect": http.StatusBadRequest, "/agui/Shop/connect?app_id=third": http.StatusForbidden, "/agui/Shop/connect?app_id=app": http.StatusOK,
		"/agui/Shop/stop/c": http.StatusBadRequest,
	} {
		r := g.do(http.MethodPost, "both", path, body)
		require.Equal(t, want, r.status, path)
		if want == http.StatusBadRequest {
			require.Contains(t, string(r.body), "X-App-Id")
		}
	}
	for app, want := range map[string]int{"app": http.StatusOK, "third": http.StatusForbidden} {
		require.Equal(t, want, g.do(http.MethodPost, "both", "/agui/Shop/connect", body, "X-App-Id", app).status, app)
	}
}

func TestInputThatCannotBeUsedIsRefusedInOnePhrase(t *testing.T) {
	t.Parallel()
	g := open(t)
	var body struct{ Message string }
	g.post("ada", "/agui/Shop", map[string]any{"threadId": "c"}).into(&body)
	require.NotContains(t, body.Message, "missing_field", "the code is next to it")
	require.Contains(t, body.Message, "runId: ")
}

func TestRunThatNoAgentTakesUpEndsAsAnError(t *testing.T) {
	t.Parallel()
	g := open(t, quick, func(o *gateway.Options) { o.FirstTurn = time.Second })
	harness.StartWorker(t, g.server, shop())
	g.lists(g.http.URL)
	s := g.run(g.http.URL, "ada", "/agui/Shop", input("r", nil, "first"))
	end := s.end()
	require.Equal(t, "no_turn", end["code"], "%v", end)
	require.Contains(t, end["message"], "start the orchestrator")
	retry := g.run(g.http.URL, "ada", "/agui/Shop", input("r", nil, "first", "second"))
	require.Equal(t, http.StatusOK, retry.status, "the chat is not locked for ever")
}

func TestRunWhoseMessageNoWorkerStoresAsksForAWorker(t *testing.T) {
	t.Parallel()
	g := open(t, quick, func(o *gateway.Options) { o.FirstTurn = time.Second })
	stop := g.runWorker()
	g.lists(g.http.URL)
	stop()
	end := g.run(g.http.URL, "ada", "/agui/Shop", input("r", nil, "hello")).end()
	require.Equal(t, "no_turn", end["code"], "%v", end)
	require.Contains(t, end["message"], "start a worker")
}

func TestStreamEndsWithAnErrorWhenTheGatewayDrains(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	s := g.run(g.http.URL, "ada", "/agui/Shop", input("r", nil, "hello"))
	s.next()
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		done <- g.gateway.Drain(ctx)
	}()
	require.Equal(t, "unavailable", s.end()["code"], "a clean end would look like success")
	require.NoError(t, <-done)
	late := g.run(g.http.URL, "ada", "/agui/Shop/connect", input("r", nil))
	status, code := late.refused()
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "unavailable", code)
}

func TestStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	g := open(t, quick, func(o *gateway.Options) {
		o.Auth = callers{"service": people()["service"], "short": auth.Identity{Apps: []string{"app"}, User: "ada", Expires: time.Now().Add(4 * time.Second)}}
	})
	harness.StartWorker(t, g.server, shop())
	g.lists(g.http.URL)
	s := g.run(g.http.URL, "short", "/agui/Shop", input("r", nil, "hello"))
	require.Equal(t, "token_expired", s.end()["code"])
}

func TestEnvelopeOfCopilotKitRunsAnAgent(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	var info struct {
		Mode   string
		Agents map[string]struct{ Name string }
	}
	require.Eventually(t, func() bool {
		g.post("ada", "/agui", map[string]any{"method": "info"}).into(&info)
		return info.Agents["Shop"].Name == "Shop"
	}, 20*time.Second, 50*time.Millisecond)
	require.Equal(t, "sse", info.Mode)
	s := g.run(g.http.URL, "ada", "/agui", map[string]any{"method": "agent/connect", "params": map[string]any{"agentId": "Shop"}, "body": input("r", nil)})
	require.Equal(t, "success", outcome(s.end()))
	for body, code := range map[string]string{
		`{"method":"agent/fly"}`: "unknown_method", `{}`: "missing_field", `{"method":"agent/run","params":{}}`: "missing_field",
		`{"method":"info","method":"info"}`: "bad_json", `[]`: "bad_json",
	} {
		r := g.do(http.MethodPost, "ada", "/agui", []byte(body))
		require.Equal(t, http.StatusBadRequest, r.status, body)
		require.Equal(t, code, r.code(), body)
	}
}

func TestRunTakesAFewNewMessagesOnly(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	many := make([]string, 17)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	status, code := g.run(g.http.URL, "ada", "/agui/Shop", input("r", nil, many...)).refused()
	require.Equal(t, http.StatusBadRequest, status)
	require.Equal(t, "too_many_messages", code)
}

func TestMessagesOfOneInputAreStoredInTheirOrder(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	sub := g.subscribe("oneturn.in.default.user_message.>")
	var sent []string
	for i := range 16 {
		sent = append(sent, "hello "+strconv.Itoa(i))
	}
	s := g.run(g.http.URL, "ada", "/agui/Shop", input("r", nil, sent...))
	require.Equal(t, http.StatusOK, s.status)
	var stored []string
	events := g.socket("ada", "c", "")
	for range sent {
		_, err := sub.NextMsg(20 * time.Second)
		require.NoError(t, err)
		f, _ := events.until("chat.user_message")
		stored = append(stored, text(f.Data["content"]))
	}
	require.Equal(t, sent, stored)
}
