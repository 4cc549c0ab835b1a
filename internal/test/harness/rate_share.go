package harness

import (
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// enoughShare is how much of its rate a chat has to keep while a fault hits others.
const enoughShare = 0.8

// Share returns the rate at which turns of a [Load] ended from one time to another, in parts of
// the rate at which they ended before; 0 when none ended before. Others chooses turns that the
// fault is not about; nil means all. Times are from the server that stored the responses.
func Share(f *oneturntest.Facts, from, to time.Time, others func(oneturntest.Accepted) bool) float64 {
	chosen := make(map[string]bool, len(f.Accepted))
	for _, a := range f.Accepted {
		if others == nil || others(a) {
			chosen[subjects.TurnKey(a.App, a.Chat, a.Run, a.Turn).String()] = true
		}
	}
	var first time.Time
	before, during := 0, 0
	for i := range f.Journal {
		r := &f.Journal[i]
		k, ok := subjects.ParseKey(r.Key)
		if !ok || k.Kind != events.KindToolResponse || !chosen[k.String()] || !r.Time.Before(to) {
			continue
		}
		if first.IsZero() {
			first = r.Time
		}
		if r.Time.Before(from) {
			before++
		} else {
			during++
		}
	}
	if before < 2 || !to.After(from) {
		return 0
	}
	rate := float64(before) / from.Sub(first).Seconds()
	return float64(during) / to.Sub(from).Seconds() / rate
}

// CheckShare is invariant I11: while a fault struck from one time to another, turns that it is
// not about ended at no less than 80 % of their rate before.
func CheckShare(f *oneturntest.Facts, from, to time.Time, others func(oneturntest.Accepted) bool) []oneturntest.Violation {
	if share := Share(f, from, to, others); share < enoughShare {
		return []oneturntest.Violation{{Invariant: "I11", Text: fmt.Sprintf("other turns ended at %.0f %% of their rate, want at least %.0f %%", 100*share, 100*enoughShare)}}
	}
	return nil
}
