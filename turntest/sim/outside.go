package sim

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/subjects"
)

// variables is the simulated store of context variables. It remembers which deltas arrived.
type variables struct{ w *world }

// Load implements [handlers.ContextStore].
func (variables) Load(context.Context, string, string, map[string]any) (map[string]any, error) {
	return map[string]any{}, nil
}

// Merge implements [handlers.ContextStore].
func (v variables) Merge(_ context.Context, _, _ string, seq uint64, _ handlers.Delta) error {
	v.w.yield("merge")
	if v.w.strike(FailedMerge, 3) {
		return errNoAnswer
	}
	v.w.merged[seq] = true
	return nil
}

// blobs is the simulated store of large payloads. Nothing here is large.
type blobs struct{}

// Inline implements [handlers.BlobStore].
func (blobs) Inline(int) bool { return true }

// Shrink implements [handlers.BlobStore].
func (blobs) Shrink(_ context.Context, _ subjects.Key, _ string, value any, _ []byte) (any, error) {
	return value, nil
}

// Object implements [handlers.BlobStore].
func (blobs) Object(_ context.Context, _ subjects.Key, _ string, stored any) (map[string]any, error) {
	args, _ := stored.(map[string]any)
	return args, nil
}

// letters is the simulated store of dead letters.
type letters struct{ w *world }

var errNoLetter = errors.New("simulated: the dead letter is not stored")

// Put implements [handlers.Letters].
func (l letters) Put(_ context.Context, m *handlers.Message, _, reason string, _ error) error {
	l.w.yield("dead letter")
	if l.w.strike(LostDead, 3) {
		return errNoLetter
	}
	l.w.letters[m.Lease.Seq] = reason
	return nil
}
