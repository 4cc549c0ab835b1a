package main

import (
	"context"

	"github.com/oneturn/oneturn/idempotency"
)

// questions counts the questions with a running answer time, by their timers; which of them are open is
// recorded only in the journal.
func (d *diagnosis) questions(ctx context.Context, s *server) {
	asked, err := s.timers(ctx, s.space.AskTimersOfTenant(idempotency.AnyToken))
	if err != nil || len(asked) == 0 {
		return // reported by streams
	}
	d.addf("waits", verdictInfo, "", "%s with a running time limit, which may be answered already: turnctl questions ls lists the open ones", plural(len(asked), "question"))
}
