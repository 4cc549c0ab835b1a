//go:build chaos || soak

package chaos_test

import (
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// latency is how long it took from when a turn was due to when its response was stored.
type latency struct {
	begun time.Time
	took  time.Duration
}

// outcome is the result of a run, in numbers.
type outcome struct {
	turns, interrupted   int
	redelivered          int // claims under a later delivery than the first
	takeovers            int
	asked, parked        int           // questions, and epochs that were let go
	responseGap          time.Duration // longest time without a stored response
	latencies            []latency
	violations           []oneturntest.Violation
	reentered, abandoned int // entered more than once; entered and never left
}

func tally(f *oneturntest.Facts) outcome {
	o := outcome{turns: len(f.Accepted)}
	begun := make(map[string]time.Time, len(f.Accepted))
	for _, a := range f.Accepted {
		begun[subjects.TurnKey(a.App, a.Chat, a.Run, a.Turn).String()] = a.Begun
	}
	var ends []time.Time
	for _, r := range f.Journal {
		k, _ := subjects.ParseKey(r.Key)
		switch k.Kind {
		case events.KindToolCall:
			if r.Meta.Lease.Delivery > 1 {
				o.redelivered++
			}
		case "takeover":
			o.takeovers++
		case events.RecordAsk:
			o.asked++
		case "park":
			if r.Meta.Outcome == "parked" {
				o.parked++
			}
		case events.KindToolResponse:
			ends = append(ends, r.Time)
			if at, ok := begun[k.String()]; ok {
				o.latencies = append(o.latencies, latency{at, r.Time.Sub(at)})
			}
			if m, err := events.Parse(r.Data); err == nil {
				var response events.ToolResponse
				if m.As(&response) == nil && response.Code == events.CodeInterrupted {
					o.interrupted++
				}
			}
		}
	}
	o.responseGap = harness.LongestGap(ends)
	type visits struct{ enters, exits int }
	seen := map[string]visits{}
	for _, e := range f.Ledger {
		v := seen[e.Key]
		switch e.Phase {
		case oneturntest.PhaseEnter:
			v.enters++
		case oneturntest.PhaseExit:
			v.exits++
		}
		seen[e.Key] = v
	}
	for _, v := range seen {
		if v.enters > 1 {
			o.reentered++
		}
		if v.enters > v.exits {
			o.abandoned++
		}
	}
	return o
}
