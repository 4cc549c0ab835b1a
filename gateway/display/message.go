package display

import (
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/events"
)

// message is a text of an agent or a user.
type message struct {
	id      string
	user    bool
	agent   string          // name of the agent
	content json.RawMessage // a JSON string, or a list of parts of a user's message
}

// messageOf returns the message of a text, nil if it is not displayed.
func messageOf(e *event) *message {
	user := e.Kind == events.KindUserMessage
	if e.UIHidden || !user && e.IsVisual != nil && !*e.IsVisual {
		return nil
	}
	m := &message{id: "msg_" + e.MessageID, agent: e.Agent, content: displayed(e.Content)}
	if user {
		m.id, m.user, m.agent = e.MessageID, true, ""
		if parts := partsOf(e.Content); parts != nil {
			m.content = parts
		}
	}
	return m
}

// displayed returns a content as a JSON string.
func displayed(content json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return content
	}
	var value any
	if json.Unmarshal(content, &value) == nil {
		if blob, ok := events.BlobOf(value); ok {
			return events.JSONOf(fmt.Sprintf("(a text of %d bytes, stored as %s)", blob.Size, blob.Blob))
		}
	}
	return events.JSONOf(string(content))
}

// partsOf returns the parts of a user's message that is not only a text, nil if it has none.
func partsOf(content json.RawMessage) json.RawMessage {
	var with struct {
		Parts []json.RawMessage `json:"parts"`
	}
	if json.Unmarshal(content, &with) != nil || len(with.Parts) == 0 {
		return nil
	}
	return events.JSONOf(with.Parts)
}

// size is how many bytes the message takes in a snapshot.
func (m *message) size() int { return len(m.id) + len(m.agent) + len(m.content) + 64 }

// key keeps messages apart from calls and from each other: clients choose the ids of their messages.
func (m *message) key() string {
	if m.user {
		return "user " + m.id
	}
	return "agent " + m.id
}
