package run

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/store"
)

// ErrDamagedState is in the error of a turn whose parked state cannot be decoded.
var ErrDamagedState = errors.New("the state of the parked turn is damaged")

// parkState is what another run of a parked turn needs besides the records of the journal.
type parkState struct {
	// Context are the context variables as the tool read them or, if it has not, the snapshot of the event: an
	// object, or an [events.Blob]. Nil if there is neither.
	Context json.RawMessage `json:"context,omitempty"`
	Read    bool            `json:"read,omitempty"` // the tool has read them
	// Base has the digests of the snapshot, see the Base of a delta, if Context is not the snapshot.
	Base       map[string]string `json:"base,omitempty"`
	Enterprise bool              `json:"enterprise,omitempty"` // of the event
}

// state returns the parkState of the run, nil if it is empty.
func (r *Run) state(ctx context.Context) (json.RawMessage, error) {
	s := parkState{Enterprise: r.t.Enterprise}
	r.mu.Lock()
	vars := r.vars
	r.mu.Unlock()
	switch {
	case vars != nil:
		s.Read, s.Base = true, r.t.digests()
	case r.t.ContextVariables != nil:
		vars = r.t.ContextVariables
	case s.Enterprise:
		return events.JSONOf(s), nil
	default:
		return nil, nil
	}
	data, err := events.AppendJSON(nil, vars)
	if err != nil {
		return nil, err
	}
	stored, err := r.reg.shrink(ctx, r.tool, r.t.Key, events.RecordPark, json.RawMessage(data), data)
	if err != nil {
		return nil, err
	}
	var inline bool
	if s.Context, inline = stored.(json.RawMessage); !inline {
		s.Context = events.JSONOf(stored)
	}
	return events.JSONOf(s), nil
}

// Restore gives a turn that is run again the state with which it was parked.
func Restore(ctx context.Context, blobs store.BlobStore, t *Turn, state json.RawMessage) error {
	var s parkState
	if len(state) == 0 {
		return nil
	}
	if err := json.Unmarshal(state, &s); err != nil {
		return errors.Join(ErrDamagedState, err)
	}
	t.Enterprise = t.Enterprise || s.Enterprise
	if len(s.Context) == 0 {
		return nil
	}
	tree, err := events.Decode(s.Context)
	if err != nil {
		return errors.Join(ErrDamagedState, err)
	}
	vars, err := blobs.Object(ctx, t.Key, events.RecordPark, tree)
	if s.Read {
		t.Vars, t.Base = vars, s.Base
		return err
	}
	t.ContextVariables = vars
	return err
}
