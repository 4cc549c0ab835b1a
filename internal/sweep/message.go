package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// A message of an agent or a user is open until its handoff is stored, or without one until its turn is claimed. While its own
// message or its turn is in the hands of a worker, that one completes it.

// CheckMessage determines the condition of one message, in the words of turns. Now is the time of the server.
func (s *Sweep) CheckMessage(ctx context.Context, key subjects.Key, now time.Time) (Finding, error) {
	f := Finding{Key: key}
	failed := func(err error) (Finding, error) { return f, fmt.Errorf("sweep: message %s: %w", key, err) }
	text, err := s.Store.Last(ctx, key.Public(events.RecordText))
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		f.Condition = TurnUnclaimed
		return f, nil
	case err != nil:
		return failed(err)
	}
	f.Text, f.Age = &text, now.Sub(text.Time)
	decoded, err := events.ReadText(text.Data)
	if err != nil || text.Err != nil { // no worker can do anything with it
		f.Condition = TurnEnded
		return f, nil //nolint:nilerr // see above
	}
	handsOff := text.Meta.Outcome != idempotency.DueTurn
	if handsOff {
		switch _, err := s.Store.Last(ctx, key.Public(events.RecordHandoff)); {
		case err == nil:
			f.Condition = TurnEnded
			return f, nil
		case !errors.Is(err, idempotency.ErrNotFound):
			return failed(err)
		}
	}
	if f.Age <= s.MinAge() {
		f.Condition = TurnYoung
		return f, nil
	}
	if decoded.Turn != "" {
		t, err := s.lastTurn(ctx, key, decoded)
		switch {
		case err != nil:
			return failed(err)
		case t.Claim != nil && !handsOff:
			f.Condition = TurnEnded // the sweep of the turn does the rest
			return f, nil
		case t.Claim != nil && t.Response == nil && t.Claim.Meta.Message == key.Turn:
			f.Condition = TurnParked // likewise, and the worker that ends the turn completes the message
			return f, nil
		}
	}
	held, err := s.LeaseHeld(ctx, text.Meta.Lease)
	switch {
	case err != nil:
		return failed(err)
	case held:
		f.Condition = TurnHeld
	default:
		f.Condition = TurnOrphaned
	}
	return f, nil
}

// lastTurn returns the turn of a message, or of its last correction.
func (s *Sweep) lastTurn(ctx context.Context, message subjects.Key, text *events.Text) (*idempotency.Turn, error) {
	for n := 0; ; n++ {
		t, err := idempotency.LoadEnds(ctx, s.Store, subjects.TurnKey(text.AppID, text.ChatID, text.RunID, text.CorrectedTurn(n)))
		if err != nil || n == text.Corrections || t.Claim == nil || t.Response == nil || t.Claim.Meta.Message != message.Turn {
			return t, err
		}
		if r, err := events.ReadResponse(t.Response.Data); err != nil || !r.Correcting {
			return t, nil //nolint:nilerr // no worker can read it either
		}
	}
}
