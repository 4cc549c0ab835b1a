package display

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
)

// Event is a decoded event of a chat. It does not change, so several chats may apply it at the same time, and what is the same for
// all their clients is made once.
type Event struct {
	event

	text   *entry // of a text; nil if it is not displayed
	key    string // of the text
	call   *call  // of a tool_call; each chat changes a copy
	result string // of a tool_response
	failed bool   // likewise

	render sync.Once
	shared []agui.Event
}

// Decode decodes a stored or live event.
func Decode(data []byte) (*Event, error) {
	decoded, err := readEvent(data)
	if err != nil {
		return nil, err
	}
	e := &Event{event: *decoded}
	switch e.Kind {
	case events.KindText, events.KindUserMessage:
		if m := messageOf(&e.event); m != nil {
			e.text, e.key = &entry{message: m}, m.key()
		}
	case events.KindToolCall:
		e.call = callOf(&e.event)
	case events.KindToolResponse:
		e.result, e.failed = resultOf(&e.event)
	}
	return e, nil
}

// once returns the events of AG-UI that show the event to any client. They are made and encoded once; a kind of event has one such function.
func (e *Event) once(show func() []agui.Event) []agui.Event {
	e.render.Do(func() {
		for _, made := range show() {
			e.shared = append(e.shared, &agui.Shared{Event: made})
		}
	})
	return e.shared
}

// event has the fields of all kinds of events of a chat that are displayed. Values that are passed on stay as they were stored.
type event struct {
	Kind   string `json:"kind"`
	UserID string `json:"user_id"`
	Agent  string `json:"agent"`

	// Of messages.
	MessageID string          `json:"message_id"`
	Content   json.RawMessage `json:"content"` // a text also in responses
	UIHidden  bool            `json:"ui_hidden"`
	IsVisual  *bool           `json:"is_visual"`
	To        *string         `json:"to"` // of a handoff
	Variable  string          `json:"variable"`
	Value     json.RawMessage `json:"value"`

	// Of calls.
	Turn             string          `json:"turn"`
	ToolCallID       string          `json:"tool_call_id"`
	ToolName         string          `json:"tool_name"`
	Corr             string          `json:"corr"`
	Program          string          `json:"program"`
	Step             string          `json:"step"`
	AwaitingResponse bool            `json:"awaiting_response"`
	ComponentType    *string         `json:"component_type"`
	Display          string          `json:"display"`
	InteractionType  string          `json:"interaction_type"`
	WorkflowName     string          `json:"workflow_name"`
	Answer           *answerTo       `json:"answer"`
	Payload          json.RawMessage `json:"payload"`
	Code             events.Code     `json:"code"`
	Success          bool            `json:"success"`
	Dismissed        bool            `json:"dismissed"`
	// Status is a text, of run_complete a number.
	Status json.RawMessage `json:"status"`

	// Of progress.
	ProgressPercent *float64 `json:"progress_percent"`
	StatusMessage   string   `json:"status_message"`

	at time.Time // of the envelope
}

// answerTo is how a question is answered. The subject stays in the gateway.
type answerTo struct {
	Schema    json.RawMessage `json:"schema"`
	ExpiresAt time.Time       `json:"expires_at"`
}

// readEvent decodes a stored or live event.
func readEvent(data []byte) (*event, error) {
	var envelope struct {
		Type      string    `json:"type"`
		Data      event     `json:"data"`
		Timestamp time.Time `json:"timestamp"`
	}
	if err := json.Unmarshal(data, &envelope); err != nil {
		return nil, fmt.Errorf("read an event of a chat: %w", err)
	}
	e := &envelope.Data
	e.at = envelope.Timestamp
	if e.Kind == "" {
		e.Kind = strings.TrimPrefix(envelope.Type, events.TypePrefix)
	}
	return e, nil
}

// status is the status as a text, "" for a number.
func (e *event) status() string {
	var text string
	_ = json.Unmarshal(e.Status, &text) // "" for a number, which run_complete has
	return text
}

// component is the component to display, "" for none.
func (e *event) component() string {
	if e.ComponentType == nil {
		return ""
	}
	return *e.ComponentType
}

// call is the id of the call that the event is about: of a question or surface the call that has made it.
func (e *event) call() string {
	if e.InteractionType != events.InteractionAutoTool {
		if call, _, ok := events.ParseQuestionID(e.ToolCallID); ok {
			return call
		}
	}
	return e.ToolCallID
}

// turnID is the id of the call of the turn that the event is of.
func (e *event) turnID() string {
	if e.Program != "" {
		return e.Program
	}
	return e.call()
}
