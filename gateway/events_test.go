package gateway_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
)

func limited(o *gateway.Options) { o.Limits = gateway.Limits{Rate: 1, Burst: 2} }

// pageOf is a page of events.
type pageOf struct {
	Events []frame
	Next   uint64
}

func TestPagesOfAChatHaveEachEventOnceInOrder(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 30}))
	var all []frame
	for after, pages := uint64(0), 0; ; pages++ {
		var page pageOf
		g.get("ada", "/api/chats/app/c/events?limit=7&after="+strconv.FormatUint(after, 10)).into(&page)
		require.LessOrEqual(t, len(page.Events), 7)
		all = append(all, page.Events...)
		if after = page.Next; after == 0 {
			require.Greater(t, pages, 3)
			break
		}
	}
	require.Len(t, all, 32)
	for i := 1; i < len(all); i++ {
		require.Greater(t, all[i].Sequence, all[i-1].Sequence)
	}
	require.Equal(t, "chat.tool_response", all[31].Type)
	require.Equal(t, "bad_cursor", g.get("ada", "/api/chats/app/c/events?after=x").code())
	require.Equal(t, "bad_limit", g.get("ada", "/api/chats/app/c/events?limit=0").code())
	require.Equal(t, "bad_limit", g.get("ada", "/api/chats/app/c/events?limit=1001").code())
	require.Equal(t, http.StatusOK, g.get("ada", "/api/chats/app/c/events?limit=1000").status)
}

func TestStreamContinuesAfterTheLastEventID(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	g.await(g.turn("c", "t1", "ada", "Pieces", "Pieces", map[string]any{"count": 3}))
	var page pageOf
	g.get("ada", "/api/chats/app/c/events").into(&page)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.http.URL+"/api/chats/app/c/events", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer ada")
	r.Header.Set("Last-Event-ID", strconv.FormatUint(page.Events[1].Sequence, 10))
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer got.Body.Close()
	require.Equal(t, "text/event-stream", got.Header.Get("Content-Type"))
	require.Equal(t, "no", got.Header.Get("X-Accel-Buffering"))
	g.turn("c", "t2", "ada", "Pieces", "Pieces", map[string]any{"count": 1})
	var sequences []uint64
	lines := bufio.NewScanner(got.Body)
	for last := ""; last != "t2" && lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			n, err := strconv.ParseUint(id, 10, 64)
			require.NoError(t, err)
			sequences = append(sequences, n)
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var f frame
			require.NoError(t, json.Unmarshal([]byte(data), &f))
			require.Equal(t, sequences[len(sequences)-1], f.Sequence)
			if f.Type == "chat.tool_response" {
				last = text(f.Data["turn"])
			}
		}
	}
	require.Len(t, sequences, 3+3, "the rest of the first turn, and the second")
	require.IsIncreasing(t, sequences)
	require.Greater(t, sequences[0], page.Events[1].Sequence)
}

// together counts how often a stream of events is flushed until it has an event.
type together struct {
	*httptest.ResponseRecorder
	last    string
	flushes int
	end     func()
}

func (w *together) FlushError() error {
	if w.flushes++; strings.Contains(w.Body.String(), w.last) {
		w.end()
	}
	return nil
}

func TestEventsThatAreThereAlreadyAreSentTogether(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 30}))
	served, _ := g.replica()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/chats/app/c/events", nil)
	r.Header = http.Header{"Accept": {"text/event-stream"}, "Authorization": {"Bearer ada"}}
	w := &together{ResponseRecorder: httptest.NewRecorder(), last: "chat.tool_response", end: cancel}
	served.ServeHTTP(w, r)
	require.Equal(t, 32, strings.Count(w.Body.String(), "\ndata: "))
	require.Less(t, w.flushes, 8)
}

func TestCursorOfAnotherJournalGetsTheResetBeforeItsEvents(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 1}))
	const path = "/api/chats/app/c/events?limit=2&after=1000000000000"
	var page struct {
		pageOf

		Reset bool
	}
	g.get("ada", path).into(&page)
	require.True(t, page.Reset)
	require.Len(t, page.Events, 2)
	g.get("ada", "/api/chats/app/c/events?after="+strconv.FormatUint(page.Next, 10)).into(&page)
	require.Len(t, page.Events, 1, "the next page is of this journal")

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.http.URL+path, nil)
	require.NoError(t, err)
	r.Header = http.Header{"Accept": {"text/event-stream"}, "Authorization": {"Bearer ada"}}
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer got.Body.Close()
	var heard []string
	for lines := bufio.NewScanner(got.Body); len(heard) < 4 && lines.Scan(); {
		if name, data, _ := strings.Cut(lines.Text(), ": "); name == "event" || name == "id" {
			heard = append(heard, name+" "+strings.TrimLeft(data, "0123456789"))
		}
	}
	require.Equal(t, []string{"event reset", "id ", "id ", "id "}, heard)
}

func TestEventSourceHasItsTokenInTheQuery(t *testing.T) {
	t.Parallel()
	short := people()
	short["short"] = auth.Identity{Apps: []string{"app"}, User: "ada", Expires: time.Now().Add(2 * time.Second)}
	g := open(t, func(o *gateway.Options) { o.Auth = short })
	const path = "/api/chats/app/c/events?access_token="
	require.Equal(t, "token_missing", g.get("", path+"ada").code(), "a request has headers")
	require.Equal(t, "token_invalid", g.get("", path+"mallory", "Accept", "text/event-stream").code())
	require.Equal(t, "token_missing", g.get("", "/api/chats/app/c/waits?access_token=ada", "Accept", "text/event-stream").code())
	r := g.get("", path+"short", "Accept", "text/event-stream") // it returns when the token ends
	require.Equal(t, http.StatusOK, r.status)
	require.Equal(t, "text/event-stream", r.header.Get("Content-Type"))
}

func TestOpenQuestionsHaveSchemaAndPayloadAndNoSubject(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	question := g.ask()
	r := g.get("ada", "/api/chats/app/c/waits")
	var found struct{ Waits []map[string]any }
	r.into(&found)
	require.Len(t, found.Waits, 1)
	require.Equal(t, question, found.Waits[0]["tool_call_id"])
	require.NotEmpty(t, found.Waits[0]["schema"])
	require.Equal(t, "lamp", object(found.Waits[0]["payload"])["item"])
	require.NotContains(t, string(r.body), "oneturn.in")
	require.NotContains(t, string(g.get("ada", "/api/chats/app/c/events").body), "oneturn.in")
}

func TestChatOfAUserIsClosedToOthersAndOneWithoutAUserIsOpenToItsTenant(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	g.await(g.turn("owned", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 1}))
	g.await(g.turn("open", "t", "", "Pieces", "Pieces", map[string]any{"count": 1}))
	for _, endpoint := range []string{"events", "waits"} {
		path := "/api/chats/app/owned/" + endpoint
		require.Equal(t, http.StatusOK, g.get("ada", path).status)
		require.Equal(t, http.StatusOK, g.get("service", path).status)
		require.Equal(t, "forbidden", g.get("bob", path).code())
		require.Equal(t, "forbidden", g.get("eve", path).code())
		require.Equal(t, http.StatusOK, g.get("bob", "/api/chats/app/open/"+endpoint).status)
		require.Equal(t, "forbidden", g.get("eve", "/api/chats/app/open/"+endpoint).code())
	}
}

func TestLargePayloadIsAnAttachmentForThoseThatMaySeeTheChat(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	g.await(g.turn("c", "t", "ada", "Printer", "Order", map[string]any{"item": "lamp"}))
	var page pageOf
	g.get("ada", "/api/chats/app/c/events").into(&page)
	blob := object(page.Events[len(page.Events)-1].Data["payload"])
	name := url.PathEscape(text(blob["$blob"]))
	r := g.get("ada", "/api/chats/app/c/blobs/"+name)
	require.Equal(t, http.StatusOK, r.status)
	require.Contains(t, r.header.Get("Content-Disposition"), "attachment")
	require.Equal(t, "nosniff", r.header.Get("X-Content-Type-Options"))
	sum := sha256.Sum256(r.body)
	require.Equal(t, blob["sha256"], hex.EncodeToString(sum[:]))
	require.InDelta(t, blob["size"], len(r.body), 0)

	require.Equal(t, "forbidden", g.get("bob", "/api/chats/app/c/blobs/"+name).code())
	require.Equal(t, "not_found", g.get("ada", "/api/chats/app/d/blobs/"+name).code(), "of another chat")
	require.Equal(t, "not_found", g.get("ada", "/api/chats/app/c/blobs/"+name+"0").code(), "a name that no event holds")
	require.Equal(t, "not_found", g.get("ada", "/api/chats/app/c/blobs/x").code())
}
