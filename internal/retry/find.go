package retry

import (
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/events"
)

// maxRefused bounds how many retries of one turn that ran nothing are passed over: each is read, by a client with a request.
const maxRefused = 20

// Find returns the turn to retry when a caller names the turn id, and what is known of it. This is the turn id itself, unless that is a
// retry that ran nothing: then it is the turn that this retry names. It fails with [Past.Check] if the turn cannot be retried.
func Find(id events.TurnID, read func(events.TurnID) (*Past, error)) (events.TurnID, *Past, error) {
	passed := map[string]bool{}
	for len(passed) < maxRefused {
		past, err := read(id)
		if err != nil {
			return id, nil, err
		}
		of, nothing := past.RanNothing()
		if !nothing || past.End == nil {
			return id, past, past.Check(id.Turn)
		}
		if passed[id.Turn] = true; passed[of] {
			return id, nil, refusal(fmt.Sprintf("the retries %q and %q ran nothing and name each other: name the turn that has run", id.Turn, of))
		}
		id.Turn = of
	}
	return id, nil, refusal(fmt.Sprintf("the turn is the last of over %d retries of retries that ran nothing: name the turn that has run", maxRefused))
}

// Key returns the turn under which a turn is retried, and whether it exists. It has the given key, or by default the first
// [events.RetryKey] that no retry has which ran nothing. It fails with code bad_args if the key belongs to another turn.
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
		_, nothing := past.RanNothing()
		switch {
		case past.Claim == nil:
			return id, false, nil
		case key == "" && past.Claim.Rejected: // also a turn that was cancelled before its retry came
		case past.Claim.ResumeOf != of.Turn:
			return id, false, refusal(fmt.Sprintf("the key %q belongs to another turn: choose a key that no turn has", id.Turn))
		case !nothing:
			return id, true, nil
		case key != "":
			return id, false, refusal(fmt.Sprintf("the key %q belongs to a retry that ran nothing, and a turn key is never used twice: choose a key that no turn has", id.Turn))
		}
		id.Turn = events.RetryKey(id.Turn)
	}
	return id, false, refusal(fmt.Sprintf("over %d retries of the turn ran nothing: choose a key for this one", maxRefused))
}

// HasToolCallID reports whether an event has this tool_call_id.
func HasToolCallID(event json.RawMessage, toolCallID string) bool {
	var e struct {
		Data struct {
			ToolCallID string `json:"tool_call_id"`
		} `json:"data"`
	}
	return json.Unmarshal(event, &e) == nil && e.Data.ToolCallID == toolCallID
}
