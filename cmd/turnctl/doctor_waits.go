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
	d.addf("waits", verdictInfo, "", "the time of %s runs, answered ones among them: turnctl waits ls lists those that are open", plural(len(asked), "question"))
}
