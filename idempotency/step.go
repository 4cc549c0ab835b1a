package idempotency

import (
	"context"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Step stores the result of a named step of a tool that has been done, and returns the one
// that counts: that of an earlier run, if it has stored one in the meantime. The id is unique
// within the call.
func (j *Journal) Step(ctx context.Context, h Hold, id string, result []byte) ([]byte, error) {
	meta := h.meta()
	meta.Nonce, meta.Secret = NewNonce(), secrecyOf(result)
	_, rival, err := j.create(ctx, Record{Key: h.Key.Private(events.RecordStep, subjects.Token(id)), Meta: meta, Data: result}, h.Claim)
	switch {
	case err != nil:
		return nil, err
	case rival == nil:
		return result, nil
	case rival.Err != nil:
		return nil, corrupt(rival)
	}
	return rival.Data, nil
}

// Step returns the result of a step that was stored when the turn was read, and whether there is
// one. A nil turn has none.
func (t *Turn) Step(id string) (result []byte, done bool) {
	if t == nil {
		return nil, false
	}
	key := t.Key.Private(events.RecordStep, subjects.Token(id))
	for i := range t.Records {
		if r := &t.Records[i]; r.Key == key && r.Err == nil {
			return r.Data, true
		}
	}
	return nil, false
}

// StepResult returns the stored result of a step, by a leader read, and whether there is one. A
// run that looks first at [Turn.Step] of what it took over, then here, never does a step again
// whose result was stored before the run began.
func (j *Journal) StepResult(ctx context.Context, h Hold, id string) (result []byte, done bool, err error) {
	found, err := j.lastOf(ctx, []string{h.Key.Private(events.RecordStep, subjects.Token(id))})
	if err != nil || !h.has(found[0]) {
		return nil, false, err
	}
	if r := found[0]; r.Err != nil {
		return nil, false, corrupt(r)
	}
	return found[0].Data, true, nil
}
