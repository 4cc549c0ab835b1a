package oneturntest_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// conversation has the facts of a chat in which agents have spoken.
type conversation struct {
	*oneturntest.Facts

	t *testing.T
}

// architect is a message whose object calls a tool, and that sets two variables.
func architect() events.AgentMessage {
	return events.AgentMessage{
		TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "t1"}, ID: "m1", Workflow: "WF", Agent: "Architect", Content: `{"title":"Shop"}`,
	}
}

// critic is a message of an agent that has a model and no tool.
func critic() events.AgentMessage {
	return events.AgentMessage{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "m2"}, ID: "m2", Workflow: "WF", Agent: "Critic", Content: `{"title":"Shop"}`, TurnSequence: 2}
}

func object() map[string]any { return map[string]any{"title": "Shop"} }

// newConversation is a chat without faults.
func newConversation(t *testing.T) *conversation {
	t.Helper()
	s := &conversation{t: t, Facts: &oneturntest.Facts{
		Messages: []oneturntest.SentMessage{{Event: architect()}, {Event: critic()}},
		Ledger: []oneturntest.LedgerEntry{
			{Phase: "enter", App: "app", Chat: "chat", Turn: "t1", Epoch: 1, Token: 4}, {Phase: "exit", App: "app", Chat: "chat", Turn: "t1", Epoch: 1, Token: 4},
		},
		Documents: map[string][]byte{"app.chat": []byte(`{"done":{"value":true,"written":1},"stage":{"value":2,"written":1},"\u0000messages":{"written":0,"messages":{"applied":[
			{"message":"message-0-m1","seq":1,"updates":[{"variable":"done","step":0},{"variable":"stage","step":1}],"handoff":{"to":"Critic","rule":0,"reason":"after_work"}},
			{"message":"message-0-m2","seq":7,"handoff":{"to":null,"rule":null,"reason":"no_rule"}}]}}}`)},
	}}
	first, second := architect(), critic()
	s.text(&first, idempotency.DueTurnHandoff, &events.Text{
		Turn: "t1", Model: "Plan", StructuredOutput: object(), Content: "A shop.",
		Changes: []events.TextChange{{Variable: "done", Value: true}, {Variable: "stage", Value: 2}},
	})
	s.follows(&first, events.RecordContextUpdate, &events.ContextUpdate{Variable: "done", Value: true}, "done")
	s.follows(&first, events.RecordContextUpdate, &events.ContextUpdate{Variable: "stage", Value: 2}, "stage")
	sum := events.Fingerprint(&events.StructuredOutputReady{Workflow: "WF", Agent: "Architect", Model: "Plan", Data: object()})
	s.record(key.Public("tool_call"), events.KindToolCall, &events.ToolCall{ToolCallID: "t1", AppID: "app", ChatID: "chat", Turn: "t1"}, idempotency.Meta{
		Owner: "w", Nonce: "n", Epoch: 1, Effect: "unsafe", Message: "message-0-m1", Fingerprint: hex.EncodeToString(sum[:]),
	})
	s.record(key.Public("tool_response"), events.KindToolResponse, &events.ToolResponse{ToolCallID: "t1", AppID: "app", ChatID: "chat", Turn: "t1", Status: "ok", Success: true}, idempotency.Meta{Nonce: "n", Epoch: 1})
	critics := "Critic"
	s.follows(&first, events.RecordHandoff, &events.Handoff{From: "Architect", To: &critics, Reason: "after_work", Turn: "t1"})
	s.text(&second, idempotency.DueHandoff, &events.Text{Model: "Plan", StructuredOutput: object(), Content: `{"title":"Shop"}`, TurnSequence: 2})
	s.follows(&second, events.RecordStructuredOutput, &events.StructuredOutput{Success: true, Status: "ok", Payload: object()})
	s.follows(&second, events.RecordHandoff, &events.Handoff{From: "Critic", Reason: "no_rule", TurnSequence: 2})
	return s
}

func (s *conversation) record(name, kind string, event any, meta idempotency.Meta) {
	s.t.Helper()
	data, err := events.Encode(kind, event, time.Unix(0, 0))
	require.NoError(s.t, err)
	seq := uint64(len(s.Journal) + 1)
	s.Journal = append(s.Journal, idempotency.Record{Key: name, Meta: meta, Data: data, Seq: seq, Time: time.Unix(int64(seq), 0)})
}

// text stores the text of a message.
func (s *conversation) text(e *events.AgentMessage, due string, text *events.Text) {
	s.t.Helper()
	text.ID, text.MessageID, text.AppID, text.ChatID, text.Agent, text.WorkflowName = e.ID, e.ID, "app", "chat", e.Agent, e.Workflow
	sum, err := e.Fingerprint()
	require.NoError(s.t, err)
	s.record(keyOf(e).Public(events.RecordText), events.KindText, text, idempotency.Meta{Outcome: due, Fingerprint: hex.EncodeToString(sum[:])})
}

// follows stores what follows from a message.
func (s *conversation) follows(e *events.AgentMessage, kind string, event any, id ...string) {
	s.t.Helper()
	switch f := event.(type) {
	case *events.ContextUpdate:
		f.ID, f.MessageID, f.AppID, f.ChatID, f.Agent = e.ID, e.ID, "app", "chat", e.Agent
	case *events.StructuredOutput:
		f.ID, f.MessageID, f.AppID, f.ChatID, f.Agent = e.ID, e.ID, "app", "chat", e.Agent
	case *events.Handoff:
		f.ID, f.MessageID, f.AppID, f.ChatID = e.ID, e.ID, "app", "chat"
	}
	s.record(keyOf(e).Public(kind, id...), kind, event, idempotency.Meta{})
}

func keyOf(e *events.AgentMessage) subjects.Key {
	return subjects.MessageKey(e.App, e.Chat, e.Run, e.ID)
}

// without removes the records whose keys end so.
func (s *conversation) without(suffix string) {
	s.Journal = slices.DeleteFunc(s.Journal, func(r idempotency.Record) bool { return strings.HasSuffix(r.Key, suffix) })
}

// swap exchanges two records, by their sequences.
func (s *conversation) swap(a, b int) {
	x, y := &s.Journal[a-1], &s.Journal[b-1]
	*x, *y = *y, *x
	x.Seq, y.Seq = y.Seq, x.Seq
}

// replace replaces a text in the record with a sequence.
func (s *conversation) replace(seq int, from, to string) {
	s.t.Helper()
	r := &s.Journal[seq-1]
	require.Contains(s.t, string(r.Data), from)
	r.Data = []byte(strings.ReplaceAll(string(r.Data), from, to))
}

// decides replaces a text in the document of the chat.
func (s *conversation) decides(from, to string) {
	s.t.Helper()
	require.Contains(s.t, string(s.Documents["app.chat"]), from)
	s.Documents["app.chat"] = []byte(strings.ReplaceAll(string(s.Documents["app.chat"]), from, to))
}

func TestMessagesWithoutFaultsAreInOrder(t *testing.T) {
	t.Parallel()
	s := newConversation(t)
	require.Empty(t, oneturntest.Check(s.Facts, map[string]bool{}))
	require.Empty(t, oneturntest.CheckMessages(s.Facts))
}

func TestConflictOfMessagesIsInOrderIfItIsADeadLetter(t *testing.T) {
	t.Parallel()
	s := newConversation(t)
	other := architect()
	other.Content = `{"title":"Bar"}`
	s.Messages = append(s.Messages, oneturntest.SentMessage{Event: other})
	require.Len(t, oneturntest.CheckMessages(s.Facts), 1)
	s.Dead = append(s.Dead, oneturntest.DeadLetter{Reason: "message_conflict", Subject: "oneturn.in.default.agent_message.app.WF.chat", Header: nats.Header{}})
	require.Empty(t, oneturntest.CheckMessages(s.Facts))
	s.Messages = s.Messages[:2]
	require.Len(t, oneturntest.CheckMessages(s.Facts), 1, "no conflict explains the dead letter")
}

func TestMessageWhoseTurnIsParkedNeedsNoHandoff(t *testing.T) {
	t.Parallel()
	s := newConversation(t)
	s.Messages[0].MayWait = true
	s.without("t1.0.tool_response")
	require.NotEmpty(t, oneturntest.CheckMessages(s.Facts), "it has handed off")
	s.without("m1.0.handoff")
	require.Empty(t, oneturntest.CheckMessages(s.Facts))
}

func TestEveryViolationOfAMessageIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want   string
		damage func(s *conversation)
	}{
		"lost":             {"neither stored nor a dead letter", func(s *conversation) { s.Journal = s.Journal[:6] }},
		"only its handoff": {"records and no text", func(s *conversation) { s.without("m2.0.text") }},
		"not published":    {"was not published", func(s *conversation) { s.Messages = s.Messages[:1] }},
		"other content":    {"content that was not published", func(s *conversation) { s.Messages[1].Event.Content = "x" }},
		"follows before":   {"stored before its text", func(s *conversation) { s.swap(7, 8) }},
		"other message":    {"its text belongs to", func(s *conversation) { s.replace(7, `"message_id":"m2"`, `"message_id":"m3"`) }},
		"second handoff": {"a second handoff", func(s *conversation) {
			e := critic()
			s.follows(&e, events.RecordHandoff, &events.Handoff{From: "Critic", Reason: "no_rule", TurnSequence: 2}, "2")
		}},
		"update not of the text": {"that its text does not have", func(s *conversation) { s.replace(2, `"value":true`, `"value":false`) }},
		"updates exchanged":      {"after a variable that its text has later", func(s *conversation) { s.swap(2, 3) }},
		"update missing":         {"the document of the chat has it set", func(s *conversation) { s.without("context_update.stage") }},
		"update not decided":     {"the document of the chat has it set", func(s *conversation) { s.decides(`,{"variable":"stage","step":1}`, ``) }},
		"decided twice":          {"it is decided twice", func(s *conversation) { s.decides(`"message-0-m2","seq":7`, `"message-0-m1","seq":1`) }},
		"update after claim":     {"after the claim of its turn", func(s *conversation) { s.swap(3, 4) }},
		"update out of order":    {"a later message of the run was handled before", func(s *conversation) { s.replace(1, `"ui_hidden"`, `"out_of_order":true,"ui_hidden"`) }},
		"value overwritten":      {"has set it to", func(s *conversation) { s.decides(`{"value":2`, `{"value":3`) }},
		"output missing":         {"its structured output is not stored", func(s *conversation) { s.without("structured_output") }},
		"output changed":         {"another one than its text has", func(s *conversation) { s.replace(8, `Shop`, `Bar`) }},
		"turn with other data":   {"other data than the object", func(s *conversation) { s.replace(1, `Shop`, `Bar`) }},
		"turn of a text":         {"its text names none", func(s *conversation) { s.replace(1, `"turn_idempotency_key":"t1",`, ``) }},
		"turn of another key":    {"its text names", func(s *conversation) { s.replace(1, `"turn_idempotency_key":"t1"`, `"turn_idempotency_key":"t9"`) }},
		"handoff missing":        {"due, and not stored", func(s *conversation) { s.without("m1.0.handoff") }},
		"handoff not due":        {"no handoff is due", func(s *conversation) { s.Journal[6].Meta.Outcome = "" }},
		"handoff before the end": {"hands off before its turn", func(s *conversation) { s.swap(5, 6) }},
		"handoff to another":     {"decided was", func(s *conversation) { s.replace(6, `"to":"Critic"`, `"to":"Architect"`) }},
		"handoff undecided":      {"the document of the chat has no decision", func(s *conversation) { s.decides(`,"handoff":{"to":null,"rule":null,"reason":"no_rule"}`, ``) }},
		"sequences exchanged": {"applied after sequence", func(s *conversation) {
			s.replace(1, `"ui_hidden"`, `"turn_sequence":3,"ui_hidden"`)
			s.replace(6, `"from"`, `"turn_sequence":3,"from"`)
		}},
		"answer without a call": {"call d0-12345678 has a response, and is not stored", func(s *conversation) {
			s.record(subjects.MessageKey("app", "chat", "", "m2").WithCall("d0-12345678").Public("tool_response"), events.KindToolResponse, &events.ToolResponse{}, idempotency.Meta{})
		}},
	} {
		s := newConversation(t)
		c.damage(s)
		var found []string
		for _, v := range oneturntest.CheckMessages(s.Facts) {
			found = append(found, v.String())
		}
		require.Contains(t, strings.Join(found, "\n"), c.want, name)
	}
}
