package run

import (
	"context"
)

// leaseContext is the context of what a run reads and writes while its tool runs: the context of the lease. An unsafe
// tool may not be entered by another worker, so its run continues without the lease, which may have lapsed because no
// worker could reach the server: the journal decides.
func (r *Run) leaseContext() context.Context {
	held := r.t.Message.Held
	if held.Err() == nil || r.reenterable() {
		return held
	}
	return r.tool
}

// persist does something in the journal, and repeats it if the lease was lost meanwhile and the run continues
// without it. The operation is idempotent.
func (r *Run) persist(op func(ctx context.Context) error) error {
	for {
		ctx := r.leaseContext()
		err := op(ctx)
		if err == nil || ctx.Err() == nil || r.leaseContext().Err() != nil {
			return err
		}
	}
}
