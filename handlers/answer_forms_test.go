package handlers_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/subjects"
)

func TestAnswerFindsTheQuestionOfARunWithAndWithoutItsID(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "run-1")
	a.ask("1")
	k.asker("turn", "run-2").ask("1")
	k.asker("turn", "").ask("1")
	k.lists(func(filter string) ([]subjects.Record, error) {
		if filter == subjects.TurnKey("app", "chat", "", "turn").ReuseNotes() {
			return nil, nil
		}
		require.Equal(t, "e.app.chat.*.0.ask.1", filter)
		return []subjects.Record{{Key: subjects.TurnKey("app", "chat", "run-2", "turn")}, {Key: a.key}, {Key: subjects.TurnKey("app", "chat", "", "turn")}}, nil
	})
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), yes())).Code)
	require.Equal(t, idempotency.Answered, a.outcome("1"))
	k.Names = nil
	require.Equal(t, events.AnswerReplayed, k.handled(k.answers(3, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.Run = "run-1" })).Code)
	m := k.answers(4, a.question("1"), yes())
	m.Stored = time.Now().Add(-time.Hour)
	require.Equal(t, events.AnswerUnknown, k.handled(m).Code)
	k.finds(idempotency.ErrTooMany)
	m = k.answers(5, a.question("1"), yes())
	m.Stored = time.Now().Add(-time.Hour)
	require.Equal(t, events.AnswerUnknown, k.handled(m).Code)
}

func TestAnswersOfAllGenerationsDecideAQuestion(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"bare":     `{"tool_call_id":"turn/1","app_id":"app","chat_id":"chat","response":true}`,
		"older":    `{"type":"ui_tool_response","eventId":"turn/1","app_id":"app","chat_id":"chat","response":{"a":1}}`,
		"input":    `{"type":"user.input.submit","request_id":"turn/1","app_id":"app","chat_id":"chat","text":"hello"}`,
		"dismiss":  `{"type":"chat.ui_tool_dismiss","data":{"event_id":"turn/1","app_id":"app","chat_id":"chat"}}`,
		"complete": `{"type":"ui_tool_complete","eventId":"turn/1","app_id":"app","chat_id":"chat","status":"done"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			a := k.asker("turn", "")
			a.ask("1")
			require.Equal(t, events.AnswerAccepted, k.handled(k.mail(2, events.KindToolCallResponse, []byte(body))).Code)
			require.Equal(t, idempotency.Answered, a.outcome("1"))
		})
	}
}

func TestAnswerIsStoredAsItsSchemaCompletesIt(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	a.ask("1", func(e *events.ToolCall) {
		e.Answer.Schema = map[string]any{"type": "object", "properties": map[string]any{
			"n": map[string]any{"type": "integer"}, "note": map[string]any{"type": "string", "default": "none"},
		}}
	})
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), map[string]any{"n": "5"})).Code)
	reply, err := a.journal.ReadReply(t.Context(), a.hold, "1")
	require.NoError(t, err)
	require.JSONEq(t, `{"n":5,"note":"none"}`, string(reply.Data))
	require.Equal(t, events.AnswerReplayed, k.handled(k.answers(3, a.question("1"), map[string]any{"n": "5"})).Code)
}

func TestAnswerWithoutATextIsInvalidForARequestForOne(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	a.ask("1", func(e *events.ToolCall) { e.InteractionType = events.InteractionInputRequest })
	for i, value := range []any{map[string]any{"x": json.Number("1")}, []any{"a"}} {
		require.Equal(t, events.AnswerInvalid, k.handled(k.answers(uint64(2+i), a.question("1"), value)).Code)
	}
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(9, a.question("1"), map[string]any{"value": "ten"})).Code)
}

func TestRejectionIsPublishedInTheChatOfTheSenderOnly(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	a.ask("1", func(e *events.ToolCall) { e.UserID = "u" })
	sub, err := k.js.Conn().SubscribeSync("oneturn.live.>")
	require.NoError(t, err)
	m := k.answers(2, a.question("1"), yes())
	m.Subject = k.space.In("default", events.KindToolCallResponse, "app", "WF", "other")
	require.Equal(t, events.AnswerForbidden, k.handled(m).Code)
	live, err := sub.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.Equal(t, k.space.Live("app", "other", events.KindToolCallRejected), live.Subject)
	require.NotContains(t, string(live.Data), "approved")
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(3, a.question("1"), yes())).Code)
	require.NoError(t, k.js.Conn().Flush())
	n, _, err := sub.Pending()
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestAnswerResultIsSentToInboxesOnly(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.ServerTime = nil // nothing else is sent
	a := k.asker("turn", "")
	a.ask("1")
	all, err := k.js.Conn().SubscribeSync(">")
	require.NoError(t, err)
	for i, subject := range []string{"oneturn.events.app.chat.t.0.tool_response", "$KV.ONETURN_TURNS.x", "orders", "_INBOX.>", "_INBOXES.x", "_INBOX", ""} {
		m := k.answers(uint64(i+2), a.question("1"), yes())
		m.Header.Set(subjects.HeaderReply, subject)
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
	}
	require.NoError(t, k.js.Conn().Flush())
	n, _, err := all.Pending()
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, 6, int(testutil.ToFloat64(k.Metrics.RepliesRefused)), "all but the answer that names no subject")
}

func TestEventsOfEarlierReleasesFollowAnswersOfWorkflowsWithCompatEvents(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.bindFolder("compat: {events: true}\nagents: {A: {model: M}}\nmodels: {M: {type: object}}\ntools: [{name: t, agent: A, kind: go}]\n")
	a := k.asker("turn", "")
	a.ask("1")
	a.ask("2", func(e *events.ToolCall) { e.Display = events.DisplayArtifact })
	sub, err := k.js.Conn().SubscribeSync("oneturn.live.>")
	require.NoError(t, err)
	for i, want := range []string{
		`{"kind":"ui_tool_complete","app_id":"app","chat_id":"chat","eventId":"turn/1","ui_tool_id":"approve","display":"inline","status":"approved"}`,
		`{"kind":"ui_tool_dismiss","app_id":"app","chat_id":"chat","event_id":"turn/2","ui_tool_id":"approve"}`,
	} {
		ask := string(rune('1' + i))
		require.Equal(t, events.AnswerAccepted, k.handled(k.answers(uint64(i+2), a.question(ask), yes())).Code)
		m, err := sub.NextMsg(10 * time.Second)
		require.NoError(t, err)
		var event struct {
			Data json.RawMessage `json:"data"`
		}
		require.NoError(t, json.Unmarshal(m.Data, &event))
		require.JSONEq(t, want, string(event.Data))
	}
}
