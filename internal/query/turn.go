package query

import (
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
)

// TurnState is the state that the journal gives a turn.
type TurnState string

// The states of a turn.
const (
	Unclaimed TurnState = "unclaimed"
	Running   TurnState = "running" // claimed, and its newest owner has not released it
	Parked    TurnState = "parked"  // released until a question is decided
	Ended     TurnState = "ended"
)

// StateOfTurn returns the state of a turn. It is still [Parked] when an answer is stored and the message of the answer
// has not resumed it yet: [idempotency.Turn.Parked] reports that.
func StateOfTurn(t *idempotency.Turn) TurnState {
	switch {
	case t.Response != nil:
		return Ended
	case t.Claim == nil:
		return Unclaimed
	}
	park := t.Key.Private(events.RecordPark, strconv.Itoa(t.Epoch))
	for i := range t.Records {
		if r := &t.Records[i]; r.Key == park && r.Meta.Outcome == idempotency.ParkParked {
			return Parked
		}
	}
	return Running
}
