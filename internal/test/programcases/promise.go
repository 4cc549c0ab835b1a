package main

import (
	"context"
	"strings"

	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// promise returns the violations of the promise in what is stored of the turn: what every case expects without writing it.
func (s *session) promise(ctx context.Context, entries []ledgerLine) (violations []string, err error) {
	facts, err := oneturntest.Collect(ctx, s.nc, s.space, "")
	if err != nil {
		return nil, err
	}
	facts.Accepted = []oneturntest.Accepted{{App: app, Chat: chat, Turn: turn, MayFail: true}}
	for _, e := range entries {
		entry := oneturntest.LedgerEntry{
			Phase: oneturntest.PhaseEnter, App: app, Chat: chat, Turn: turn, Call: e.Call, Key: e.Key, Token: e.Token, Epoch: e.Epoch, Attempt: e.Attempt,
			UnixNS: e.From.UnixNano(),
		}
		facts.Ledger = append(facts.Ledger, entry)
		if !e.To.IsZero() && !e.Stopped {
			entry.Phase, entry.UnixNS = oneturntest.PhaseExit, e.To.UnixNano()
			facts.Ledger = append(facts.Ledger, entry)
		}
	}
	of, _, _ := strings.Cut(subjects.TurnKey(app, chat, "", turn).String(), "."+subjects.SingleCall)
	for _, v := range oneturntest.Check(facts, nil) {
		if strings.HasPrefix(v.Turn, of+".") { // others are turns that its tools have published
			violations = append(violations, v.String())
		}
	}
	return violations, nil
}
