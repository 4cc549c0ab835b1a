package events_test

import (
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
)

// A frontend that was sent a question sends the answer to the subject that the question names.
func ExampleEncodeAnswer() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	question := events.QuestionID("turn-1", events.AskID("approve", 1))
	body, err := events.EncodeAnswer(&events.ToolCallResponse{
		TurnID: events.TurnID{Chat: "chat-1"}, Workflow: "Support", ToolCallID: question, UserID: "ada",
		Value: map[string]any{"status": "approved"},
	}, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := events.DecodeAnswer(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.ToolCallID, answer.UserID, answer.Value)

	// What a MozaiksAI frontend sends means the same.
	older, err := events.DecodeAnswer([]byte(`{"type":"ui_tool_response","chat_id":"chat-1","eventId":"turn-1/approve","response":{"status":"approved"}}`))
	fmt.Println(older.ToolCallID, older.Value, err)
	// Output:
	// turn-1/approve ada map[status:approved]
	// turn-1/approve map[status:approved] <nil>
}
