package api

import (
	"encoding/json"
	"time"

	"github.com/oneturn/oneturn/events"
)

// QuestionsRequest asks for the open questions of the subject's tenant, or for one question.
type QuestionsRequest struct {
	Chat string `json:"chat_id,omitempty"` // of one chat, of the tenant's if empty
	// ToolCallID names one question of the chat: it is returned in any state, also before it is asked
	// if its turn runs.
	ToolCallID string `json:"tool_call_id,omitempty"`
	// Run is the run id of the turn of that question, if it is known: with it the id of the question
	// leads to its turn. Without it the chat is searched for a turn with a run id.
	Run  string `json:"run_id,omitempty"`
	From uint64 `json:"from,omitempty"` // Next of the page before, 0 = the beginning
}

// Questions is the reply to [VerbQuestions]: a page of questions in the order in which they were asked.
type Questions struct {
	Questions []Question `json:"questions"`
	// Next is From of the next page, 0 when there is none now. It is valid only with the same Chat: a request for one
	// chat continues at a sequence of the journal, a request for all chats at a sequence of the timers stream.
	Next uint64 `json:"next,omitempty"`
}

// Waits is the reply to [VerbWaits].
//
// Deprecated: the reply to [VerbQuestions] is [Questions].
type Waits struct {
	Waits []Question `json:"waits"`
	Next  uint64     `json:"next,omitempty"`
}

// Question is a question to a person.
type Question struct {
	Sequence    uint64        `json:"sequence"` // of the question in the journal
	State       QuestionState `json:"state"`
	ToolCallID  string        `json:"tool_call_id"`
	App         string        `json:"app_id"`
	Chat        string        `json:"chat_id"`
	Run         string        `json:"run_id,omitempty"`
	Turn        string        `json:"turn"`
	Workflow    string        `json:"workflow_name"`
	Agent       string        `json:"agent"`
	Tool        string        `json:"tool_name"`
	Interaction string        `json:"interaction_type"`
	Component   string        `json:"component_type"`
	Display     string        `json:"display,omitempty"`
	User        string        `json:"user_id,omitempty"` // the only user that may answer, "" for any user of the chat
	Secret      bool          `json:"secret"`            // the answer is a secret: do not echo it
	AskedAt     time.Time     `json:"asked_at"`
	ExpiresAt   time.Time     `json:"expires_at,omitzero"` // end of the time to answer
	Subject     string        `json:"answer_subject"`      // to publish the answer to

	// Schema that an answer must match, and the payload that is shown: only with the questions of a
	// chat. A payload over 64 KiB is omitted: read it from the history.
	Schema       json.RawMessage `json:"schema,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"`
	PayloadBytes int             `json:"payload_bytes,omitempty"`
}

// QuestionState is the state of a [Question].
type QuestionState string

// The states of a question.
const (
	// NotAsked is the state of a named question that its turn, which runs, has not asked yet and may
	// never ask. Only its turn and the subject for its answer are known.
	NotAsked QuestionState = "not_asked"

	Open      QuestionState = "open"
	Answered  QuestionState = "answered"
	Expired   QuestionState = "expired"
	Cancelled QuestionState = "cancelled" // its turn was cancelled
	Closed    QuestionState = "closed"    // its turn ended with the question open
	// Unreadable is the state of a question whose answer is stored and cannot be read: its turn ends as state_corrupt.
	Unreadable QuestionState = "unreadable"
)

// AnswerRequest answers a question. The reply is an events.AnswerResult.
type AnswerRequest struct {
	Chat       string          `json:"chat_id"`
	ToolCallID string          `json:"tool_call_id"`      // of the question
	Run        string          `json:"run_id,omitempty"`  // of its turn: without it the chat is searched for the question
	UserID     string          `json:"user_id,omitempty"` // the user that answers; a question to a user accepts no other user's answer
	Value      json.RawMessage `json:"value"`             // the answer
}

// The result of an answer that no worker has decided on in time: it is stored in the inbound stream, and
// will be decided on. Sending it again is harmless.
const (
	StatusPublished = 202
	CodePublished   = events.AnswerCode("published")
)
