package retry

import (
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/events"
)

// maxRefused bounds how many refused retries of one turn are passed over.
const maxRefused = 100

// Find returns the turn that a retry of a turn names and how it ended: the turn itself, or, of a retry that was refused before it ran
// anything, the one that it was to retry. It fails with [Past.Check].
func Find(id events.TurnID, read func(events.TurnID) (*Past, error)) (events.TurnID, *Past, error) {
	for range maxRefused {
		past, err := read(id)
		if err != nil {
			return id, nil, err
		}
		of, refused := past.Refused()
		if !refused || past.End == nil {
			return id, past, past.Check()
		}
		id.Turn = of
	}
	return id, nil, refusal(fmt.Sprintf("over %d retries of the turn were refused: name the turn that has run", maxRefused))
}

// Key returns the turn under which a turn is retried, and whether it exists. It has the given key, or by default the first
// [events.RetryKey] that no refused retry has. It fails with code bad_args if the key belongs to another turn.
func Key(of events.TurnID, key string, read func(events.TurnID) (*Past, error)) (id events.TurnID, exists bool, err error) {
	id = of
	if id.Turn = key; key == "" {
		id.Turn = events.RetryKey(of.Turn)
	}
	for range maxRefused {
		past, err := read(id)
		if err != nil {
			return id, false, err
		}
		_, refused := past.Refused()
		switch {
		case past.Claim == nil:
			return id, false, nil
		case past.Claim.ResumeOf != of.Turn:
			return id, false, refusal(fmt.Sprintf("the key %q belongs to another turn: choose a key that no turn has", id.Turn))
		case !refused:
			return id, true, nil
		case key != "":
			return id, false, refusal(fmt.Sprintf("the key %q belongs to a retry that was refused, and a turn key is never used twice: choose a key that no turn has", id.Turn))
		}
		id.Turn = events.RetryKey(id.Turn)
	}
	return id, false, refusal(fmt.Sprintf("over %d retries of the turn were refused: choose a key for this one", maxRefused))
}

// IsOf reports whether an event has a tool_call_id.
func IsOf(event json.RawMessage, toolCallID string) bool {
	var e struct {
		Data struct {
			ToolCallID string `json:"tool_call_id"`
		} `json:"data"`
	}
	return json.Unmarshal(event, &e) == nil && e.Data.ToolCallID == toolCallID
}
