package events_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func sampleText() *events.Text {
	return &events.Text{
		ID: "m", MessageID: "m", AppID: "a", ChatID: "c", Agent: "A", WorkflowName: "W", Content: "Here it is.", IsVisual: true, Turn: "t",
		Model: "M", StructuredOutput: map[string]any{"a": true}, Repairs: []string{"trailing_comma"}, Around: []string{"prose"},
		Unread:  &events.Rejection{Content: "why", Payload: map[string]any{"feedback": "f"}},
		Changes: []events.TextChange{{Variable: "v", Value: true}},
	}
}

func TestMessageDecodesAsItWasEncoded(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]*events.AgentMessage{
		"agent": {
			TurnID: events.TurnID{App: "a", Chat: "c", Run: "r", Turn: "t"}, ID: "m", Workflow: "W", Agent: "A", Content: "NEXT",
			FinishReason: "stop", UserID: "u", TurnSequence: 3, ContextVariables: map[string]any{"v": true}, Timestamp: noon,
		},
		"object": {
			TurnID: events.TurnID{App: "a", Chat: "c", Turn: "m"}, ID: "m", Workflow: "W", Agent: "A", Content: map[string]any{"a": true}, Timestamp: noon,
		},
		"user": {
			TurnID: events.TurnID{App: "a", Chat: "c", Turn: "m"}, ID: "m", Workflow: "W", Agent: events.AgentUser, User: true, Content: "hello", UserID: "u", Timestamp: noon,
		},
	} {
		body, err := events.EncodeMessage(want, noon)
		require.NoError(t, err, name)
		got, err := events.DecodeMessage(body)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
}

func TestMessageThatCannotBeUsedNamesTheField(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"kind":"agent_message","agent":"A","content":"x","message_id":"m"}`:                     "chat_id is missing",
		`{"kind":"agent_message","agent":"A","content":"x","chat_id":"c"}`:                        "message_id is missing",
		`{"kind":"agent_message","content":"x","chat_id":"c","message_id":"m"}`:                   "agent is missing",
		`{"kind":"agent_message","agent":"A","content":5,"chat_id":"c","message_id":"m"}`:         "content is a number",
		`{"kind":"agent_message","agent":"A","chat_id":"c","message_id":"m"}`:                     "content is null or absent",
		`{"kind":"tool_call","agent":"A","content":"x","chat_id":"c","message_id":"m"}`:           "kind is",
		`{"kind":"agent_message","agent":"A","content":"x","chat_id":"c","message_id":"a\u0000"}`: "control character",
	} {
		_, err := events.DecodeMessage([]byte(body))
		require.ErrorIs(t, err, events.ErrBadArgs, body)
		require.ErrorContains(t, err, want, body)
	}
}

func TestMessageWithoutItsNamesIsAMissingField(t *testing.T) {
	t.Parallel()
	_, err := events.DecodeMessage([]byte(`{"kind":"user_message","content":"x","chat_id":"c"}`))
	var missing *events.MissingFieldError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "message_id", missing.Field)
}

func TestMessagesWithOneIDDifferByTheirContent(t *testing.T) {
	t.Parallel()
	first := events.AgentMessage{ID: "m", Workflow: "W", Agent: "A", Content: map[string]any{"a": "1", "b": "2"}}
	same := events.AgentMessage{ID: "m", Workflow: "W", Agent: "A", Content: map[string]any{"b": "2", "a": "1"}, ContextVariables: map[string]any{"v": true}}
	other := events.AgentMessage{ID: "m", Workflow: "W", Agent: "A", Content: "text"}
	fingerprint := func(m events.AgentMessage) [32]byte {
		sum, err := m.Fingerprint()
		require.NoError(t, err)
		return sum
	}
	require.Equal(t, fingerprint(first), fingerprint(same))
	require.NotEqual(t, fingerprint(first), fingerprint(other))
}
