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

// A message of an agent or a user is open until its handoff is stored, or without one until its turn, and each correction that has to
// follow, is claimed for it, or a worker has noted that nothing more follows. The worker that holds its inbound message, or its turn,
// completes it.

// CheckMessage determines the condition of one message, which is one of those that turns have. Now is the time of the server.
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
	if err != nil || text.Err != nil { // no worker can continue it
		f.Condition = TurnEnded
		return f, nil //nolint:nilerr // see above
	}
	handsOff := text.Meta.Outcome != idempotency.DueTurn
	if handsOff {
		switch r, err := s.Store.Last(ctx, key.Public(events.RecordHandoff)); {
		case err == nil && !r.Former(text.Seq):
			f.Condition = TurnEnded
			return f, nil
		case err != nil && !errors.Is(err, idempotency.ErrNotFound):
			return failed(err)
		}
	}
	if f.Age <= s.MinAge() {
		f.Condition = TurnYoung
		return f, nil
	}
	if decoded.Turn != "" {
		t, err := s.lastTurn(ctx, &text, decoded)
		own := t != nil && t.Claim != nil && t.Claim.Meta.Message == key.Turn // else what precedes the claim may be missing
		switch {
		case err != nil:
			return failed(err)
		case !handsOff && (t == nil || own && (t.Response != nil || decoded.Corrections == 0)):
			f.Condition = TurnEnded // the sweep of the turn does the rest
			return f, nil
		case t != nil && t.Claim != nil && t.Response == nil && (handsOff || own):
			f.Condition, f.Of = TurnParked, t.Key // the worker that ends the turn completes the message, or a later sweep
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

// lastTurn returns the turn of a message, or of its last correction; nil if that never runs.
func (s *Sweep) lastTurn(ctx context.Context, message *idempotency.Record, text *events.Text) (*idempotency.Turn, error) {
	key, _ := subjects.ParseKey(message.Key)
	for n := 0; ; n++ {
		t, err := s.turnOf(ctx, message, key.Key, subjects.TurnKey(text.AppID, text.ChatID, text.RunID, text.CorrectedTurn(n)))
		if err != nil || t == nil || n == text.Corrections || t.Claim == nil || t.Response == nil || t.Claim.Meta.Message != key.Turn {
			return t, err
		}
		if r, err := events.ReadResponse(t.Response.Data); err != nil || !r.Correcting {
			return t, nil //nolint:nilerr // no worker can read it either
		}
	}
}

// turnOf returns a turn of a message: under the key that its text names, or where a worker has noted that it is. It is nil if the
// turn never runs.
func (s *Sweep) turnOf(ctx context.Context, message *idempotency.Record, key, turn subjects.Key) (*idempotency.Turn, error) {
	t, err := idempotency.LoadEnds(ctx, s.Store, turn)
	if err != nil || t.Claim != nil && t.Claim.Meta.Message == key.Turn {
		return t, err
	}
	note, err := s.Store.Last(ctx, key.Private(events.RecordTurn))
	switch {
	case errors.Is(err, idempotency.ErrNotFound) || err == nil && note.Former(message.Seq):
		return t, nil
	case err != nil:
		return nil, err
	case note.Meta.Outcome == idempotency.NoTurn:
		return nil, nil //nolint:nilnil // there is none
	}
	if elsewhere, ok := subjects.ParseCall(note.Meta.Outcome); ok {
		return idempotency.LoadEnds(ctx, s.Store, elsewhere)
	}
	return t, nil
}

// turnIsOpen reports whether the turn that a message waited for at its last check, if any, is still open. It costs one read; a check of
// the message costs three or more.
func (s *Sweep) turnIsOpen(ctx context.Context, o *OpenTurn) (bool, error) {
	key, ok := subjects.ParseCall(o.Of)
	if !ok {
		return false, nil
	}
	t, err := idempotency.LoadEnds(ctx, s.Store, key)
	if err != nil {
		return false, fmt.Errorf("sweep: turn %s: %w", key, err)
	}
	return t.Claim != nil && t.Response == nil, nil
}
