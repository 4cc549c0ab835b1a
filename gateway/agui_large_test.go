package gateway_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
)

// texts stores texts of an agent in a chat, of so many bytes each.
func (g *gate) texts(chat string, count, size int) {
	g.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(g, err)
	store := storetest.Open(g.T, g.nc, space)
	for i := range count {
		id := "text" + strconv.Itoa(i)
		data := fmt.Sprintf(`{"type":"chat.text","data":{"kind":"text","message_id":%q,"agent":"A","user_id":"ada","content":%q,"is_visual":true},"timestamp":"2026-01-02T03:04:05Z"}`,
			id, strings.Repeat("x", size))
		_, err := store.Create(g.Context(), idempotency.Record{
			Key: subjects.MessageKey("app", chat, "", id).Public(events.RecordText), Data: []byte(data), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1},
		})
		require.NoError(g, err)
	}
}

func TestClientMaySendBackAllThatItWasSent(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	g.texts("c", 40, 200<<10) // more than a snapshot has
	s := g.run(g.http.URL, "ada", "/agui/Shop/connect", input("r1", nil))
	messages, _ := s.until(agui.TypeMessagesSnapshot)["messages"].([]any)
	require.NotEmpty(t, messages)
	s.end()
	in := input("r2", nil, "hello")
	sent, _ := in["messages"].([]any)
	in["messages"] = append(messages, sent...)
	size, err := json.Marshal(in)
	require.NoError(t, err)
	require.Greater(t, len(size), 5<<20)
	require.Equal(t, http.StatusOK, g.run(g.http.URL, "ada", "/agui/Shop/connect", in).status)
	envelope := map[string]any{"method": agui.MethodConnect, "params": map[string]any{"agentId": "Shop"}, "body": in}
	require.Equal(t, http.StatusOK, g.run(g.http.URL, "ada", "/agui", envelope).status)
	in["padding"] = strings.Repeat("x", 3<<20)
	status, code := g.run(g.http.URL, "ada", "/agui/Shop/connect", in).refused()
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Equal(t, "too_large", code)
}

// slowly returns another gateway, which reads through a proxy.
func (g *gate) slowly() (*harness.Proxy, *gate) {
	g.Helper()
	proxy := harness.NewProxy(g.T, strings.TrimPrefix(g.server.URL(), "nats://"))
	nc, err := nats.Connect(proxy.URL(), nats.MaxReconnects(-1))
	require.NoError(g, err)
	g.Cleanup(nc.Close)
	slow := *g
	slow.gateway, slow.http = g.replica(quick, func(o *gateway.Options) { o.NATS = nc })
	return proxy, &slow
}

// opened starts a run of chat c, and returns when its first event came and how many messages its snapshot has.
func (g *gate) opened(url, run string) (started time.Duration, messages int, err error) {
	data, err := json.Marshal(input(run, nil))
	if err != nil {
		return 0, 0, err
	}
	r, err := http.NewRequestWithContext(g.Context(), http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return 0, 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer ada")
	begun := time.Now()
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct {
			Type     agui.EventType    `json:"type"`
			Messages []json.RawMessage `json:"messages"`
		}
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if ok && json.Unmarshal([]byte(text), &e) != nil {
			return 0, 0, fmt.Errorf("not an event: %.100s", text)
		}
		if e.Type == agui.TypeRunStarted {
			started = time.Since(begun)
		}
		if e.Type == agui.TypeMessagesSnapshot {
			return started, len(e.Messages), nil
		}
	}
	return 0, 0, fmt.Errorf("status %d: no snapshot", response.StatusCode)
}

func TestRunsOfALongChatBeginPromptlyAndShareOneReading(t *testing.T) {
	t.Parallel()
	g := open(t, quick)
	harness.StartWorker(t, g.server, shop())
	const texts = 320
	g.texts("c", texts, 8_000)
	g.texts("other", 1_001, 1) // a chat near the end of the journal is read record by record
	proxy, slow := g.slowly()
	g.lists(slow.http.URL)
	require.Equal(t, http.StatusOK, slow.get("ada", "/api/chats/app/c/events?limit=1").status)
	proxy.Delay(140 * time.Millisecond) // the chat takes about eight seconds
	begun := time.Now()
	var runs errgroup.Group
	for i := range 20 {
		path := "/agui/Shop/connect"
		if i%2 == 0 {
			path = "/agui/Shop"
		}
		runs.Go(func() error {
			started, messages, err := g.opened(slow.http.URL+path, fmt.Sprint("r", i))
			switch {
			case err != nil:
				return err
			case started > 4*time.Second:
				return fmt.Errorf("run %d began after %s: it waited for its chat", i, started)
			case messages != texts:
				return fmt.Errorf("run %d displays %d messages", i, messages)
			}
			return nil
		})
	}
	require.NoError(t, runs.Wait())
	whole := time.Since(begun)
	require.Greater(t, whole, 5*time.Second, "the chat was not slow: runs would have begun in any case")
	begun = time.Now()
	g.run(slow.http.URL, "ada", "/agui/Shop/connect", input("late", nil)).until(agui.TypeMessagesSnapshot)
	require.Less(t, time.Since(begun), whole/2, "the chat was read again")
}

func TestRequestsAreUnavailableNotTooManyWhileTheServerHangs(t *testing.T) {
	t.Parallel()
	g := open(t)
	proxy, slow := g.slowly()
	slow.get("ada", "/api/chats/app/warm/waits")
	proxy.Stall(harness.Up)
	proxy.Stall(harness.Down)
	var requests errgroup.Group
	for i := range 4 {
		requests.Go(func() error {
			for range 2 { // the second one comes when the first one has used up time
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprint(slow.http.URL, "/api/chats/app/", i, "/waits"), nil)
				if err != nil {
					return err
				}
				r.Header.Set("Authorization", "Bearer ada")
				response, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					return err
				}
				_ = response.Body.Close()
				if response.StatusCode != http.StatusServiceUnavailable {
					return fmt.Errorf("status %d", response.StatusCode)
				}
			}
			return nil
		})
	}
	require.NoError(t, requests.Wait())
	proxy.Heal()
}
