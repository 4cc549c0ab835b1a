package gateway_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/test/harness"
)

const boundaryType = "chat.resume_boundary"

func TestSocketOfAnEmptyChatGetsItsBoundaryAndThenWhatHappens(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	s := g.socket("ada", "c", "")
	b, before := s.until(boundaryType)
	require.Empty(t, before)
	require.Equal(t, map[string]any{"kind": "resume_boundary", "chat_id": "c", "last_sequence": 0.0, "replayed_messages": 0.0, "open": []any{}}, b.Data)

	g.turn("c", "t", "ada", "Clerk", "Order", map[string]any{"item": "lamp"})
	call, _ := s.until("chat.tool_call")
	require.Equal(t, "t", call.Data["tool_call_id"])
	question, _ := s.until("chat.tool_call")
	require.False(t, question.Replay)
	for _, field := range []string{"tool_call_id", "corr", "tool_name", "component_type", "workflow_name", "interaction_type", "display", "display_type", "payload"} {
		require.NotEmpty(t, question.Data[field], field)
	}
	answer := object(question.Data["answer"])
	require.NotEmpty(t, answer["schema"])
	require.NotContains(t, answer, "subject")

	s.send(map[string]any{"type": "tool_call_response", "tool_call_id": question.Data["tool_call_id"], "response": map[string]any{"status": "approved"}})
	missing := map[string]bool{"ack.tool_call_response": true, "chat.tool_call_ack": true, "chat.tool_response": true}
	for len(missing) > 0 {
		f, err := s.read()
		require.NoError(t, err)
		if delete(missing, f.Type); f.Type == "ack.tool_call_response" {
			require.Equal(t, "accepted", f.Data["code"])
		}
	}
}

func TestCursorOfASocketIsTheLastSequenceItSaw(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	g.await(g.turn("c", "t1", "ada", "Pieces", "Pieces", map[string]any{"count": 20}))
	g.socket("ada", "c", "").until("chat.tool_response") // now the gateway has all of them
	first := g.socket("ada", "c", "")
	b, all := first.until(boundaryType)
	require.Len(t, all, 22)
	for i, f := range all {
		require.True(t, f.Replay)
		require.True(t, i == 0 || f.Sequence > all[i-1].Sequence)
	}
	require.EqualValues(t, 22, b.Data["replayed_messages"])
	require.EqualValues(t, all[21].Sequence, b.Data["last_sequence"])

	second := g.socket("ada", "c", "?after="+strconv.FormatUint(all[9].Sequence, 10))
	_, rest := second.until(boundaryType)
	require.Equal(t, all[10:], rest)
	second.send(map[string]any{"type": "client.resume", "lastClientIndex": all[19].Sequence})
	_, rest = second.until(boundaryType)
	require.Equal(t, all[20:], rest)

	reset := g.socket("ada", "c", "?after=1000000000000")
	b, rest = reset.until(boundaryType)
	require.Equal(t, true, b.Data["reset"])
	require.Equal(t, all, rest)
}

func TestSocketsOfTwoReplicasGetTheSameEvents(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	other := *g
	other.gateway, other.http = g.replica()
	socks := []*sock{g.socket("ada", "c", ""), g.socket("ada", "c", ""), other.socket("ada", "c", "")}
	for _, s := range socks {
		s.until(boundaryType)
	}
	g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 10})
	var seen [3][]frame
	for i, s := range socks {
		last, before := s.until("chat.tool_response")
		seen[i] = append(before, last)
	}
	require.Len(t, seen[0], 12)
	require.Equal(t, seen[0], seen[1])
	require.Equal(t, seen[0], seen[2])
}

func TestFrameCannotNameAnotherChatOrUser(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	question := g.ask()
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	s.send(map[string]any{"type": "tool_call_response", "data": map[string]any{
		"tool_call_id": question, "response": map[string]any{"status": "approved"}, "chat_id": "other", "user_id": "root", "app_id": "other",
		"context": map[string]any{"chat_id": "other", "app_id": "other", "user_id": "root"},
	}})
	verdict, _ := s.until("ack.tool_call_response")
	require.Equal(t, "accepted", verdict.Data["code"])
}

func TestOldNamesOfAnswersGetTheOldAckToo(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	question := g.ask()
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	send := func(status string) {
		s.send(map[string]any{"type": "ui_tool_response", "eventId": question, "ui_tool_id": "approve", "payload": nil, "response": map[string]any{"status": status}})
	}
	send("approved")
	verdict, _ := s.until("ack.ui_tool_response")
	require.Equal(t, map[string]any{"eventId": question, "status": "accepted"}, verdict.Data)
	send("rejected")
	verdict, _ = s.until("ack.ui_tool_response")
	require.Equal(t, "rejected", verdict.Data["status"])
}

func TestSocketCancelsATurn(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	g.ask()
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	s.send(map[string]any{"type": "chat.cancel", "turn": "t"})
	end, _ := s.until("chat.tool_response")
	require.Equal(t, "cancelled", end.Data["code"])
}

func TestUserMessageIsPublishedOnceUnderItsIDAndEveryTabSeesIt(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	one, two := g.socket("ada", "c", ""), g.socket("ada", "c", "")
	one.until(boundaryType)
	two.until(boundaryType)
	for range 2 {
		one.send(map[string]any{"type": "user.input.submit", "text": "hello", "message_id": "m1"})
		got, _ := one.until("ack.input")
		require.Equal(t, "m1", got.Data["message_id"])
	}
	text, _ := two.until("chat.user_message")
	require.Equal(t, "hello", text.Data["content"])
	require.Equal(t, "ada", text.Data["user_id"])
	one.send(map[string]any{"type": "user.input.submit", "text": "bye", "message_id": "m2"})
	text, _ = two.until("chat.user_message")
	require.Equal(t, "bye", text.Data["content"], "the first one is stored once")
}

func TestBadFramesAreReportedAndTooManyCloseTheSocket(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	bad := []string{`{`, `[]`, `"x"`, `null`, `{"type":5}`, `{"type":"unknown"}`, `{"type":"tool_call_response"}`, `{"a":1,"a":2}`, `{"type":"chat.cancel"}`}
	for _, text := range bad {
		s.sendText([]byte(text))
		f, _ := s.until("error")
		require.NotEmpty(t, f.Data["code"], text)
		require.NotEmpty(t, f.Data["message"], text)
	}
	s.send(map[string]any{"type": "chat.cancel", "data": map[string]any{"message_id": "m", "reason": "x"}})
	f, _ := s.until("error")
	require.Equal(t, "missing_field", f.Data["code"])
	require.Equal(t, "chat.cancel", f.Data["type"], "it names the frame")
	require.Equal(t, "m", f.Data["message_id"])
	require.NotContains(t, f.Data["message"], "body")
	for range 20 - len(bad) - 1 {
		s.sendText([]byte(`{`))
	}
	code, reason, _ := s.closed()
	require.Equal(t, websocket.StatusPolicyViolation, code)
	require.Equal(t, "bad_frames", reason)
}

func TestFrameTooManyIsNamedWithTheTimeToWait(t *testing.T) {
	t.Parallel()
	g := open(t, limited)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	for range 4 {
		s.send(map[string]any{"type": "user.input.submit", "text": "hello", "message_id": "m"})
	}
	f, _ := s.until("error")
	require.Equal(t, "rate_limited", f.Data["code"])
	require.Equal(t, "user.input.submit", f.Data["type"])
	require.Equal(t, "m", f.Data["message_id"])
	require.InDelta(t, 1, f.Data["retry_after"], 0)
}

func TestFrameThatIsBinaryOrTooLargeClosesTheSocket(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	require.NoError(t, s.conn.Write(t.Context(), websocket.MessageBinary, []byte("x")))
	code, _, _ := s.closed()
	require.Equal(t, websocket.StatusUnsupportedData, code)

	s = g.socket("ada", "c", "")
	s.until(boundaryType)
	_ = s.conn.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat("x", 2<<20))) // the gateway may close before it ends
	code, _, _ = s.closed()
	require.Equal(t, websocket.StatusMessageTooBig, code)
}

func TestRefusedSocketIsClosedWithTheReasonAndGetsNoEvent(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 1}))
	g.socket("ada", "c", "").until("chat.tool_response") // now the gateway has all of them
	for name, c := range map[string]struct{ token, path, reason string }{
		"no token":         {"", "/ws/Shop/app/c/ada", "token_missing"},
		"wrong token":      {"mallory", "/ws/Shop/app/c/ada", "token_invalid"},
		"another user":     {"bob", "/ws/Shop/app/c/ada", "forbidden"},
		"another tenant":   {"eve", "/ws/Shop/app/c/ada", "forbidden"},
		"narrowed token":   {"narrow", "/ws/Shop/app/c/ada", "forbidden"},
		"chat of another":  {"bob", "/ws/Shop/app/c/bob", "forbidden"},
		"me, not the same": {"bob", "/ws/Shop/app/c/me", "forbidden"},
	} {
		s, refused := g.dial(c.token, c.path)
		require.Zero(t, refused, name)
		code, reason, frames := s.closed()
		require.Equal(t, websocket.StatusPolicyViolation, code, name)
		require.Equal(t, c.reason, reason, name)
		require.Empty(t, frames, name)
	}
	s, refused := g.dial("", "/ws/Shop/app/c/me?access_token=ada")
	require.Zero(t, refused)
	_, before := s.until(boundaryType)
	require.Len(t, before, 3)
	conn, _, err := websocket.Dial(t.Context(), g.http.URL+"/ws/Shop/app/c/me", &websocket.DialOptions{Subprotocols: []string{"oneturn", "bearer.ada"}}) //nolint:bodyclose // Dial documents that it need not be closed
	require.NoError(t, err)
	require.Equal(t, "oneturn", conn.Subprotocol())
	(&sock{t, conn}).until(boundaryType)
	require.NoError(t, conn.Close(websocket.StatusNormalClosure, ""))
	r := g.get("ada", "/ws/Shop/app/c/ada")
	require.Equal(t, http.StatusUpgradeRequired, r.status)
}

func TestSocketOnAnEmptyChatThatAnotherUserGetsIsClosed(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	s := g.socket("bob", "c", "")
	s.until(boundaryType)
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 1}))
	code, reason, frames := s.closed()
	require.Equal(t, websocket.StatusPolicyViolation, code)
	require.Equal(t, "forbidden", reason)
	require.Empty(t, frames)
}

func TestTokenThatEndsClosesItsSocketsAndStreams(t *testing.T) {
	t.Parallel()
	short := people()
	short["short"] = auth.Identity{Apps: []string{"app"}, User: "ada", Expires: time.Now().Add(2 * time.Second)}
	g := open(t, func(o *gateway.Options) { o.Auth = short })
	s, refused := g.dial("short", "/ws/Shop/app/c/me")
	require.Zero(t, refused)
	code, reason, _ := s.closed()
	require.Equal(t, websocket.StatusPolicyViolation, code)
	require.Equal(t, "token_expired", reason)
	require.Equal(t, http.StatusOK, g.get("short", "/api/chats/app/c/events", "Accept", "text/event-stream").status, "it returns: the stream has ended")
}

func TestUserHasSoManyPlacesForSockets(t *testing.T) {
	t.Parallel()
	g := open(t, func(o *gateway.Options) { o.Limits.StreamsPerUser = 1 })
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	_, refused := g.dial("ada", "/ws/Shop/app/d/ada")
	require.Equal(t, http.StatusTooManyRequests, refused)
	g.socket("bob", "d", "").until(boundaryType)
}

func TestSlowReaderDelaysNoOtherAndMissesNothing(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	slow, quick := g.socket("ada", "c", ""), g.socket("ada", "c", "")
	slow.until(boundaryType)
	quick.until(boundaryType)
	const count = 300
	g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": count, "size": 30_000})
	last, before := quick.until("chat.tool_response") // 9 MB are more than the buffers of a connection hold
	require.Len(t, before, count+1)
	end, missed := slow.until("chat.tool_response")
	require.Equal(t, last, end)
	require.Equal(t, before, missed)
}

func TestHiddenTextIsSentNeitherLiveNorOnReplay(t *testing.T) {
	t.Parallel()
	g := open(t)
	c := shop()
	c.Workflows = interview(t)
	harness.StartWorker(t, g.server, c)
	live, refused := g.dial("ada", "/ws/Interview/app/c/ada")
	require.Zero(t, refused)
	live.until(boundaryType)
	for i, m := range []oneturn.Message{
		{Agent: "Interviewer", Content: "NEXT"}, {Agent: "Background", Content: "a note to myself"}, {Agent: "Interviewer", Content: "What do you sell?"},
	} {
		m.MessageID = oneturn.MessageID{App: "app", Chat: "c", Message: strconv.Itoa(i)}
		m.Workflow, m.UserID = "Interview", "ada"
		outcome, err := g.client.DoMessage(t.Context(), &m)
		require.NoError(t, err)
		require.Equal(t, i == 0, outcome.Text.UIHidden)
		require.Equal(t, i != 1, outcome.Text.IsVisual)
	}
	texts := func(frames []frame) (list []any) {
		for _, f := range frames {
			if f.Type == "chat.text" {
				list = append(list, f.Data["content"])
			}
		}
		return list
	}
	text, _ := live.until("chat.text")
	require.Equal(t, "What do you sell?", text.Data["content"])
	again, refused := g.dial("ada", "/ws/Interview/app/c/ada")
	require.Zero(t, refused)
	_, replayed := again.until(boundaryType)
	require.Equal(t, []any{"What do you sell?"}, texts(replayed))
	var page pageOf
	g.get("ada", "/api/chats/app/c/events").into(&page)
	require.Equal(t, []any{"What do you sell?"}, texts(page.Events))
}
