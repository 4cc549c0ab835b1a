package gateway_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/test/harness"
)

const respondPath = "/api/tool-call/respond"

// answerTo is the answer to a question of chat c.
func answerTo(question, status string) map[string]any {
	return map[string]any{"chat_id": "c", "tool_call_id": question, "response": map[string]any{"status": status}}
}

func TestAnswerIsTheVerdictOfTheWorkerAndTheSameAgainIsReplayed(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	question := g.ask()
	r := g.post("ada", respondPath, answerTo(question, "approved"))
	require.Equal(t, http.StatusOK, r.status, string(r.body))
	require.Equal(t, "accepted", r.code())
	old := map[string]any{"chat_id": "c", "corr": question, "payload": map[string]any{"status": "approved"}, "user_id": "ada", "app_id": "app"}
	require.Equal(t, "replayed", g.post("ada", respondPath, old).code())
	r = g.post("ada", respondPath, answerTo(question, "rejected"))
	require.Equal(t, http.StatusConflict, r.status)
	require.Equal(t, "already_answered", r.code())
	response := harness.Await(t, g.client, oneturn.TurnID{App: "app", Chat: "c", Turn: "t"})
	require.Equal(t, "decided: approved", response.Payload)
}

func TestRefusedAnswerNamesTheReasonAndLeavesTheQuestionOpen(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	question := g.ask()
	good := answerTo(question, "approved")
	with := func(key string, value any) map[string]any {
		body := answerTo(question, "approved")
		if body[key] = value; value == nil {
			delete(body, key)
		}
		return body
	}
	for name, c := range map[string]struct {
		token  string
		body   any
		status int
		code   string
	}{
		"no chat":        {"ada", with("chat_id", nil), 400, "missing_field"},
		"no question":    {"ada", with("tool_call_id", nil), 400, "missing_field"},
		"no response":    {"ada", with("response", nil), 400, "missing_field"},
		"a list":         {"ada", []int{1}, 400, "bad_json"},
		"no token":       {"", good, 401, "token_missing"},
		"a wrong token":  {"mallory", good, 401, "token_invalid"},
		"another user":   {"bob", good, 403, "forbidden"},
		"named user":     {"ada", with("user_id", "bob"), 403, "forbidden"},
		"named tenant":   {"ada", with("app_id", "other"), 403, "forbidden"},
		"narrowed token": {"narrow", good, 403, "forbidden"},
		"does not match": {"ada", with("response", map[string]any{"canary": 1}), 422, "invalid"},
		"not asked":      {"ada", with("tool_call_id", "t/77"), 404, "unknown"},
		"another tenant": {"eve", good, 404, "unknown"},
	} {
		r := g.post(c.token, respondPath, c.body)
		require.Equal(t, c.status, r.status, "%s: %s", name, r.body)
		require.Equal(t, c.code, r.code(), name)
		require.NotContains(t, string(r.body), "oneturn.", name)
	}
	require.Equal(t, "accepted", g.post("ada", respondPath, good).code())
}

func TestAnswerThatFindsNoQuestionNamesTheTenantThatWasSearched(t *testing.T) {
	t.Parallel()
	g := open(t)
	r := g.post("ada", "/api/tool-call/respond", map[string]any{"chat_id": "c", "tool_call_id": "q", "response": true})
	require.Equal(t, http.StatusNotFound, r.status)
	require.Contains(t, string(r.body), `tenant \"app\"`)
	require.Contains(t, string(r.body), "app_id")
}

func TestBodyIsRefusedByItsSizeTypeAndForm(t *testing.T) {
	t.Parallel()
	g := open(t)
	raw := func(body string, header ...string) *reply {
		return g.do("POST", "ada", respondPath, []byte(body), header...)
	}
	require.Equal(t, "unsupported_media_type", raw(`{}`, "Content-Type", "text/plain").code())
	require.Equal(t, "unsupported_media_type", raw(`{}`, "Content-Encoding", "gzip").code())
	require.Equal(t, "bad_json", raw(``).code())
	require.Equal(t, "bad_json", raw(`{"chat_id":"c","chat_id":"d"}`).code(), "a key twice")
	deep := bytes.Repeat([]byte("["), 70)
	require.Equal(t, "bad_json", raw(`{"response":`+string(deep)).code(), "too deep")
	r := raw(`{"response":"` + string(bytes.Repeat([]byte("x"), 1<<20)) + `"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, r.status)
	require.Equal(t, "too_large", r.code())
}

func TestAnswerIsStoredWithoutAVerdictWhileNoWorkerRuns(t *testing.T) {
	t.Parallel()
	g := open(t)
	stop := g.runWorker()
	question := g.ask()
	stop()
	r := g.post("ada", respondPath, answerTo(question, "approved"))
	require.Equal(t, http.StatusAccepted, r.status, string(r.body))
	require.Equal(t, "published", r.code())
	harness.StartWorker(t, g.server, shop())
	require.Equal(t, http.StatusOK, g.post("ada", respondPath, answerTo(question, "approved")).status, "one of both is the answer")
}

func TestServiceAnswersForTheUserThatItNames(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	question := g.ask()
	body := answerTo(question, "approved")
	body["user_id"] = "bob"
	require.Equal(t, "forbidden", g.post("service", respondPath, body).code(), "the chat is not the named user's")
	body["user_id"] = "ada"
	require.Equal(t, "accepted", g.post("service", respondPath, body).code())
}

func TestCancelEndsTheTurnAndClosesItsQuestion(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	question := g.ask()
	const path = "/api/chats/app/c/cancel"
	require.Equal(t, "missing_field", g.post("ada", path, map[string]any{}).code())
	require.Equal(t, "unknown", g.post("ada", path, map[string]any{"turn": "none"}).code())
	require.Equal(t, "forbidden", g.post("bob", path, map[string]any{"turn": "t"}).code())
	r := g.post("ada", path, map[string]any{"tool_call_id": question, "reason": "enough"})
	require.Equal(t, http.StatusAccepted, r.status, string(r.body))
	response := harness.Await(t, g.client, oneturn.TurnID{App: "app", Chat: "c", Turn: "t"})
	require.EqualValues(t, "cancelled", response.Code)
	r = g.post("ada", respondPath, answerTo(question, "approved"))
	require.Equal(t, http.StatusGone, r.status)
	for _, named := range []map[string]any{{"turn": "t"}, {"tool_call_id": question}} {
		r = g.post("ada", path, named)
		require.Equal(t, http.StatusOK, r.status, "a repeated request is harmless: %s", r.body)
		require.Equal(t, "ended", r.code())
	}
	require.Equal(t, "forbidden", g.post("bob", path, map[string]any{"turn": "t"}).code(), "others do not learn that it has ended")
	s := g.socket("ada", "c", "")
	s.send(map[string]any{"type": "chat.cancel", "turn": "t"})
	a, _ := s.until("ack.cancel")
	require.Equal(t, "ended", a.Data["code"])
	require.EqualValues(t, http.StatusOK, a.Data["status"])
	require.Equal(t, "t", a.Data["turn"])
}

func TestCancelWithoutWorkersIsStoredUntilTheTurnHasEnded(t *testing.T) {
	t.Parallel()
	g := open(t)
	stop := g.runWorker()
	question := g.ask()
	stop()
	for range 2 {
		require.Equal(t, "published", g.post("ada", "/api/chats/app/c/cancel", map[string]any{"tool_call_id": question}).code(), "the turn is still open")
	}
	g.runWorkerUntilEnd("t")
	require.Equal(t, "ended", g.post("ada", "/api/chats/app/c/cancel", map[string]any{"tool_call_id": question}).code(), "no worker runs")
}

// runWorkerUntilEnd runs a worker until a turn of chat c has ended.
func (g *gate) runWorkerUntilEnd(turn string) {
	g.Helper()
	stop := g.runWorker()
	harness.Await(g.T, g.client, oneturn.TurnID{App: "app", Chat: "c", Turn: turn})
	stop()
}
