package main

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// waits counts the questions that wait for people, by the names of records: an exact count of
// many would read the journal.
func (d *diagnosis) waits(ctx context.Context, s *server) {
	journal, err := s.journal()
	if err != nil {
		return // told by streams
	}
	defer journal.Close()
	all := subjects.Key{App: idempotency.AnyToken, Chat: idempotency.AnyToken, Turn: idempotency.AnyToken, Call: idempotency.AnyToken}
	asks, err := journal.Names(ctx, all.AsksOfTurn())
	if errors.Is(err, idempotency.ErrTooMany) {
		d.addf("waits", verdictInfo, "", "over 10,000 questions in the journal, too many to count those that are open: turnctl waits ls lists them")
		return
	}
	acks, errAcks := journal.Names(ctx, all.Public(subjects.KindAck, idempotency.AnyToken))
	if err != nil || errAcks != nil || len(asks) == 0 {
		return // told by streams
	}
	decided := make(map[string]bool, len(acks))
	for _, r := range acks {
		decided[r.String()+"."+r.ID] = true
	}
	open := 0
	turns := map[subjects.Key]bool{}
	for _, r := range asks {
		if !decided[r.String()+"."+r.ID] {
			open++
			turns[r.Key] = true
		}
	}
	d.addf("waits", verdictInfo, "", "%s of %s without an answer, those of ended turns among them; %d answered, expired or cancelled", plural(open, "question"), plural(len(turns), "turn"), len(asks)-open)
}
