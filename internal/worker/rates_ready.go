package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/limits"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// checkRates refuses to start on a server without the bucket of rates, if a tool has one. Workers
// without need no bucket, and run on servers that were provisioned before there was one.
func (w *Worker) checkRates(ctx context.Context, store *limits.KV) error {
	b := rated(w.Bindings())
	if b == nil {
		return nil
	}
	if _, err := store.Now(ctx); errors.Is(err, limits.ErrMissing) {
		return fmt.Errorf("oneturn worker: tool %s of workflow %s has a rate limit: %w", b.Tool, b.Workflow, err)
	}
	return nil // a server that does not answer now may do so when a call waits
}

// rated returns a binding with a rate limit, nil if there is none.
func rated(set *bindings.Set) *bindings.Binding {
	for _, b := range set.Bindings() {
		if b.Limits.Tool.Rate != (target.Rate{}) || b.Limits.Tenant.Rate != (target.Rate{}) {
			return b
		}
	}
	return nil
}
