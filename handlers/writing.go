package handlers

import (
	"context"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/store"
)

// How the end of a turn is stored. As long as the lease lasts, a write of unknown outcome is sent
// again. A lost lease does not end that: the response is a create, which harms no other worker however
// late it is, and the lease may have lapsed because no worker could reach the server.

// lastTry is how long a worker that has lost its lease tries to store how a turn ends without a result
// in hand: any other worker stores the same.
const lastTry = 10 * time.Second

// maxPending bounds the results of tools that a worker without a lease still tries to store. Each
// keeps its run and its slot.
const maxPending = 4096

// respond stores the outcome of a tool that was entered. It tries until the worker has ended its tools:
// without the result, a turn whose tool is unsafe ends as interrupted.
func (h *Handlers) respond(t *turn, hold idempotency.Hold, out engine.Outcome) inbound.Disposition {
	write := func(ctx context.Context) inbound.Disposition { return h.storeOutcome(ctx, t, hold, out) }
	if d, decided := underLease(t.m, write); decided {
		return d
	}
	defer h.pending.Add(-1)
	if h.pending.Add(1) > maxPending {
		h.often(t.m, slog.LevelError, "a result is dropped: too many wait for the server after their leases have ended", "", t.Attrs("limit", maxPending)...)
		return inbound.Left()
	}
	h.often(t.m, slog.LevelWarn, "the lease ended before the result was stored: it is tried until the worker stops", "", t.Attrs()...)
	ctx, done := afterLease(t.m, 0)
	defer done()
	return write(ctx)
}

// end stores the response of a turn whose tool has no outcome.
func (h *Handlers) end(t *turn, hold idempotency.Hold, r *events.ToolResponse) inbound.Disposition {
	write := func(ctx context.Context) inbound.Disposition { return h.finish(ctx, t, hold, r) }
	if d, decided := underLease(t.m, write); decided {
		return d
	}
	ctx, done := afterLease(t.m, lastTry)
	defer done()
	return write(ctx)
}

// underLease writes as long as the lease lasts. It reports false if the lease was, or is, lost and
// nothing is decided.
func underLease(m *message, write func(ctx context.Context) inbound.Disposition) (d inbound.Disposition, decided bool) {
	if m.Held.Err() != nil {
		return inbound.Left(), false
	}
	d = write(m.Held)
	return d, d.Do != inbound.Leave || m.Held.Err() == nil
}

// afterLease is the context of what does not need the lease. It ends soon after the worker has ended
// its tools, and after most, unless that is 0.
func afterLease(m *message, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, done := store.Context(context.WithoutCancel(m.Held), m.tools)
	if most == 0 {
		return ctx, done
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	return ctx, func() {
		cancel()
		done()
	}
}
