package tools

import "encoding/json"

// Prompt is a conversation with an agent that the product has written: a request for a program, or for the answer after
// one. The system text comes from the product; arguments of a call never become part of it.
type Prompt struct {
	System      string // follows the system text of the agent's manifest
	Messages    []Message
	Schema      json.RawMessage // JSON Schema that the text of the answer should fit; nil for any text
	Temperature *float64        // unless the agent's manifest sets one; nil leaves it to the endpoint
	// Whole asks for the answer as a [Completion], also one that was cut off; else the result is the text of an answer that ended.
	Whole bool
}

// Completion is the answer of a model with what its endpoint reports about it.
type Completion struct {
	Content      string `json:"content"`
	FinishReason string `json:"finish_reason"` // stop, length, …; "" if it is not known
	Usage        Usage  `json:"usage"`
}

// Usage counts tokens, as the endpoint reports them.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
}

// Message is one message of a conversation.
type Message struct {
	Role    string `json:"role"` // system, user or assistant
	Content string `json:"content"`
}
