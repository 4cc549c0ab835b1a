package handlers

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/subjects"
)

// With `on_key_reuse: run` a turn key that comes again with other data is another turn. Which of the
// two keys the data of a message runs under, the plain one or one that its fingerprint completes, is a
// record of its own, see [idempotency.Placement]: redeliveries and duplicates follow it, whatever has
// become of the claim of the first data.

// claimPlaced claims a turn under the key that its data has.
func (h *Handlers) claimPlaced(ctx context.Context, t *turn) (idempotency.Decision, error) {
	runs := h.runsOnReuse(t)
	place, err := h.place(t, runs)
	switch {
	case errors.Is(err, idempotency.ErrDamaged): // it may run under either key, and is never entered under another
		t.reject = reject(events.CodeStateCorrupt, errors.New("the journal record of where the turn runs cannot be read: it was not run"))
		place.Own = true
	case err != nil:
		return idempotency.Decision{}, err
	}
	if place.Own {
		t.reuse()
		return h.claim(ctx, t)
	}
	decision, err := h.claim(ctx, t)
	if err != nil || decision.Action != idempotency.Conflict {
		return decision, err
	}
	if runs {
		err = h.Journal.MoveOut(t.m.Held, t.placing(), place)
	} else if place, err = h.Journal.Placed(t.m.Held, t.placing(), t.ownKey()); err == nil && !place.Own {
		return decision, nil
	}
	if err != nil {
		return idempotency.Decision{}, err
	}
	t.reuse()
	return h.claim(ctx, t)
}

// place returns where the data of t runs. Only a workflow that runs reused keys decides that. One that refuses
// them by name, because it may have run them before, or that is unknown here, follows what was decided; one
// that does not mention them does so for a message that may have been claimed before.
func (h *Handlers) place(t *turn, runs bool) (idempotency.Placement, error) {
	switch {
	case runs:
		return h.Journal.Place(t.m.Held, t.placing(), t.ownKey())
	case t.Binding == nil || t.Binding.FollowKeyReuse || t.m.offers() > 1:
		return h.Journal.Placed(t.m.Held, t.placing(), t.ownKey())
	}
	return idempotency.Placement{}, nil
}

// runsOnReuse reports whether the workflow of t runs reused keys. A turn that is rejected for its age
// or its deliveries has not been resolved.
func (h *Handlers) runsOnReuse(t *turn) bool {
	b := t.Binding
	if b == nil {
		b, _ = h.Bindings().Resolve(t.Workflow, t.Agent, t.Model) // unknown here: what was decided is followed
	}
	return b != nil && b.RunOnKeyReuse
}

// placing is the claim of t as far as its place goes.
func (t *turn) placing() idempotency.Claim {
	return idempotency.Claim{Key: t.Key, Lease: t.m.Lease, Fingerprint: t.hash, Trace: inbound.Trace(t.m.Header)}
}

// ownKey is the key that the fingerprint of t completes.
func (t *turn) ownKey() subjects.Key { return t.Key.Reuse(t.Run, t.TurnID.Turn, t.hash) }

// reuse gives t the key and the call id that its fingerprint completes.
func (t *turn) reuse() {
	t.Key = t.ownKey()
	t.Name = t.Key.String()
	t.ref = idempotency.RefOf(t.Name, t.fingerprint)
	t.CallID = events.QualifiedCallID(t.TurnID.Turn, t.Key.Turn)
}
