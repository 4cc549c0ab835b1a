package main

import (
	"context"

	"github.com/oneturn/oneturn/idempotency"
)

// waits counts the questions whose time to be answered runs, by their timers: which of them are
// open only the journal knows.
func (d *diagnosis) waits(ctx context.Context, s *server) {
	asked, err := s.timers(ctx, s.space.AskTimersOfTenant(idempotency.AnyToken))
	if err != nil || len(asked) == 0 {
		return // told by streams
	}
	d.addf("waits", verdictInfo, "", "%s with a running time limit, which may be answered already: turnctl waits ls lists the open ones", plural(len(asked), "question"))
}
