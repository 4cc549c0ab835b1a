package limits

import (
	"time"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// maxClockSkew is how far the clocks of two workers may be apart after each has asked the store's.
const maxClockSkew = 5 * time.Second

// offer is the place that a call gets, or that it does not want because it is too late.
type offer struct {
	at    time.Time
	taken bool
}

// plan gives places to calls in their order, after those that are taken until next. It returns the
// places, and until when places are taken then. Latest is the latest place that each call wants.
func plan(rate target.Rate, next, now time.Time, latest []time.Time) ([]offer, time.Time) {
	interval := rate.Interval()
	ahead := interval * time.Duration(rate.Size()-1) // by so much a call may be early
	if next.After(now.Add(MaxWait + ahead + interval + maxClockSkew)) {
		next = now.Add(ahead) // no plan of this rate goes so far: it was another rate before
	}
	if next.Before(now) {
		next = now
	}
	offers := make([]offer, len(latest))
	for i, end := range latest {
		at := next.Add(-ahead)
		if at.Before(now) {
			at = now
		}
		offers[i] = offer{at: at, taken: !at.After(end)}
		if offers[i].taken {
			next = next.Add(interval)
		}
	}
	return offers, next
}
