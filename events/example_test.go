package events_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
)

// A publisher encodes a turn; a worker decodes it and answers.
func Example() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	body, err := events.EncodeTurn(&events.StructuredOutputReady{
		TurnID:   events.TurnID{Chat: "chat-1", Turn: "turn-1"},
		Workflow: "Support", Agent: "Triage", Model: "Ticket",
		Data:         map[string]any{"title": "Printer on fire", "priority": json.Number("1")},
		AutoToolMode: true,
	}, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	turn, err := events.DecodeTurn(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(turn.App, turn.Chat, turn.Turn, turn.Agent)
	reply, err := events.Encode(events.KindTurnConflict, map[string]any{"turn": turn.Turn}, now)
	fmt.Println(string(reply), err)
	// Output:
	// default chat-1 turn-1 Triage
	// {"type":"chat.turn_conflict","data":{"kind":"turn_conflict","turn":"turn-1"},"timestamp":"2026-01-02T03:04:05.000Z"} <nil>
}

func ExampleDecode() {
	_, err := events.Decode([]byte(`{"user":{"id":1,"id":2}}`))
	fmt.Println(err)
	var syntax *events.SyntaxError
	fmt.Println(errors.As(err, &syntax), syntax.Pointer)
	// Output:
	// invalid JSON at byte 16, "/user/id": duplicate key: send each key once
	// true /user/id
}
