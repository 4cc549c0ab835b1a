package display

import (
	"encoding/json"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
)

// Snapshot returns all that the client displays: the messages, also pending ones that are not in the journal yet, and the
// state. Nothing of it is streamed again.
func (v *View) Snapshot(c *Chat, pending []agui.Message) []agui.Event {
	messages := make([]agui.Message, 0, 2*len(c.entries)+len(pending))
	for _, e := range c.entries {
		messages = append(messages, v.messagesOf(e)...)
	}
	for _, m := range pending {
		if c.Stored(m.ID) == 0 {
			messages = append(messages, m)
		}
	}
	distinguish(messages)
	v.stated = true
	return []agui.Event{&agui.MessagesSnapshot{Messages: messages}, &agui.StateSnapshot{Snapshot: c.State()}}
}

// distinguish gives a text another id if a call or a result has its id: clients choose the ids of their messages, and refuse a
// snapshot that has an id twice.
func distinguish(messages []agui.Message) {
	taken := make(map[string]bool, len(messages))
	text := func(m *agui.Message) bool { return m.Role != agui.RoleTool && len(m.ToolCalls) == 0 }
	for i := range messages {
		if !text(&messages[i]) {
			taken[messages[i].ID] = true
		}
	}
	for i := range messages {
		if m := &messages[i]; text(m) {
			for taken[m.ID] {
				m.ID = "text_" + m.ID
			}
			taken[m.ID] = true
		}
	}
}

// Activities returns an activity for each program and call that runs.
func (v *View) Activities(c *Chat) []agui.Event {
	var out []agui.Event
	for _, t := range c.turns {
		if c.running[t.id] != t {
			continue
		}
		if p := c.plans[t.id]; p != nil {
			out = append(out, v.activity(p.activity(), p.snapshot())...)
		}
		id := agui.ActivityID(t.id)
		out = append(out, v.activity(id, &agui.ActivitySnapshot{
			MessageID: id, ActivityType: progressType, Content: map[string]any{"tool_call_id": t.id, "phase": t.phase, "progress": nil, "message": ""},
		})...)
	}
	return out
}

// messagesOf returns an entry as messages. A call without a message around it is the message of its id: so do clients when
// it is streamed.
func (v *View) messagesOf(e *entry) []agui.Message {
	if e.message != nil {
		return []agui.Message{e.message.asText()}
	}
	c := e.call
	if c.question != nil && v.Mode(c) == ByComposer {
		return []agui.Message{c.prompt()}
	}
	tool := agui.Call(c.id, c.name, c.args)
	tool.Metadata = events.JSONOf(map[string]any{"_ui": c.ui})
	out := []agui.Message{agui.AssistantMessage(c.id, "", tool)}
	if own, ok := v.Answers[c.id]; ok && c.question != nil {
		return append(out, own)
	}
	if c.result == "" {
		return out
	}
	result := agui.ToolMessage(agui.ResultID(c.id), c.id, c.result)
	if c.failed {
		result.Metadata = json.RawMessage(`{"success":false}`)
	}
	return append(out, result)
}

// asText is the message as a client displays it.
func (m *message) asText() agui.Message {
	out := agui.Message{ID: m.id, Role: agui.RoleAssistant, Name: m.agent}
	if m.user {
		out.Role = agui.RoleUser
	}
	if json.Unmarshal(m.content, &out.Content) != nil { // a part of a kind that is not known
		out.Content = agui.Text(string(m.content))
	}
	return out
}

// prompt is a question that the composer of the client answers.
func (c *call) prompt() agui.Message {
	return agui.Message{ID: c.id, Role: agui.RoleAssistant, Name: c.agent, Content: agui.Text(c.question.message)}
}
