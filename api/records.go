package api

import (
	"encoding/json"
	"time"

	"github.com/oneturn/oneturn/events"
)

// TurnRequest asks for the public records of one turn of the subject's tenant. The reply is a [Page]. Of the steps of a program
// it has the records of questions and of what they show, not their calls and responses: the tool_response in the reply is
// always the end of the turn.
type TurnRequest struct {
	Chat string `json:"chat_id"`
	Run  string `json:"run_id,omitempty"`
	Turn string `json:"turn"` // turn key
	// Message is the id of a message of an agent or a user: its records are read, and not the records of a turn. What its turn, if it
	// makes one, has stored is read by the key of that turn.
	Message string `json:"message_id,omitempty"`
	// Fingerprint of the data, in hex: of turns that ran under a reused key (on_key_reuse: run)
	// only the one with this data is read. Empty means all of them.
	Fingerprint string `json:"fingerprint,omitempty"`
	From        uint64 `json:"from,omitempty"` // journal sequence to start at, 0 = the beginning
	// Steps asks for the steps of a turn that is a program, in place of its records: Page.Steps.
	Steps bool `json:"steps,omitempty"`
}

// HistoryRequest asks for events of a chat of the subject's tenant. The reply is a [Page].
type HistoryRequest struct {
	Chat string `json:"chat_id"`
	From uint64 `json:"from,omitempty"` // journal sequence to start at, 0 = the beginning
}

// Page is the reply to [VerbTurn] and [VerbHistory]: events in the order of their sequences.
type Page struct {
	Records []Record `json:"records"`
	Steps   []Step   `json:"steps,omitempty"` // for [TurnRequest].Steps: the copied ones of a retry, then those that were called, in the order of their calls
	Next    uint64   `json:"next,omitempty"`  // From of the next page, 0 when there is none now
}

// Record is one event of the journal.
type Record struct {
	Sequence uint64    `json:"sequence"` // the live copy has it in header Nats-Sequence
	Time     time.Time `json:"time"`
	Kind     string    `json:"kind"`
	// Fingerprint of the data that the turn was claimed with; the live copy has it in header
	// Oneturn-Fingerprint.
	Fingerprint string          `json:"fingerprint,omitempty"`
	Event       json.RawMessage `json:"event"` // null with a code
	// Code is state_corrupt for the response of a turn, its end, that cannot be read; else empty.
	Code events.Code `json:"code,omitempty"`
	// Due is set on the text of a message: what follows from it, turn, handoff, or both with a comma.
	// Without turn, a turn_idempotency_key in the text is of a turn that will have no records.
	Due string `json:"due,omitempty"`
	// TurnFingerprint is set on the text of a message that makes a turn: the fingerprint of the data of that turn. A turn with another
	// one under its key is not of the message. It is empty if the data is in a blob.
	TurnFingerprint string `json:"turn_fingerprint,omitempty"`
}
