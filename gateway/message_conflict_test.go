package gateway_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/internal/test/harness"
)

func TestAnotherTextUnderAUsedMessageIDIsAConflict(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	for _, c := range []struct {
		text, code string
		status     int
	}{
		{"one", "accepted", http.StatusOK},
		{"one", "replayed", http.StatusOK},
		{"two", "conflict", http.StatusConflict},
		{"one", "replayed", http.StatusOK},
	} {
		s.send(map[string]any{"type": "user.input.submit", "text": c.text, "message_id": "u1"})
		f, _ := s.until("ack.input")
		require.Equal(t, c.code, f.Data["code"])
		require.EqualValues(t, c.status, f.Data["status"])
	}
}

// userText is an input whose last message is u1.
func userText(run, content string) map[string]any {
	return input(run, func(in map[string]any) {
		in["messages"] = []any{map[string]any{"id": "u1", "role": "user", "content": content}}
	})
}

func TestOfRunsWithDifferentTextsUnderOneIDOneIsTaken(t *testing.T) {
	t.Parallel()
	first := func(o *gateway.Options) { o.FirstTurn = 2 * time.Second }
	g := open(t, quick, first)
	harness.StartWorker(t, g.server, shop())
	_, other := g.replica(quick, first)
	g.lists(g.http.URL)
	g.lists(other.URL)
	ends := make(chan string, 4)
	for i, base := range []string{g.http.URL, other.URL, g.http.URL, other.URL} {
		go func() {
			s := g.run(base, "ada", "/agui/Shop", userText(string(rune('a'+i)), "text "+string(rune('a'+i))))
			if s.status != http.StatusOK {
				_, code := s.refused()
				ends <- code
				return
			}
			ends <- text(s.end()["code"])
		}()
	}
	codes := map[string]int{}
	for range 4 {
		codes[<-ends]++
	}
	require.Equal(t, map[string]int{"no_turn": 1, "conflict": 3}, codes)
}

func TestFrameAndRunWithTheIDOfAnotherMessageAreRefused(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	s.send(map[string]any{"type": "user.input.submit", "text": "one", "message_id": "u1"})
	s.until("ack.input")
	status, code := g.run(g.http.URL, "ada", "/agui/Shop", userText("r1", "two")).refused()
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, "conflict", code)
	same := g.run(g.http.URL, "ada", "/agui/Shop", userText("r2", "one"))
	require.Equal(t, http.StatusOK, same.status)
	same.cancel()
}

func TestRunWhoseMessageIsComparedWithTheJournalKeepsNoOtherFromTheChat(t *testing.T) {
	t.Parallel()
	g := openAgent(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	s.send(map[string]any{"type": "user.input.submit", "text": "one", "message_id": "u1"})
	s.until("ack.input")
	reads, intercepted := interceptReads(t)
	_, slow := g.replica(quick, intercepted(g.server))
	g.lists(slow.URL)
	g.run(slow.URL, "ada", "/agui/Shop/connect", input("r0", nil)).until(agui.TypeMessagesSnapshot) // it knows whose the chat is
	release := reads.hold(events.RecordText)
	compared := make(chan int, 1)
	go func() { compared <- g.run(slow.URL, "ada", "/agui/Shop", userText("r1", "two")).status }()
	<-reads.begun
	g.run(slow.URL, "ada", "/agui/Shop/connect", input("r2", nil)).until(agui.TypeMessagesSnapshot)
	require.Empty(t, compared, "the first run waits for the journal")
	release()
	require.Equal(t, http.StatusConflict, <-compared)
}
