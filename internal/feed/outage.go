package feed

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
)

// outage decides how often it is logged that the consumer at the end of the journal is lost, and how soon another one is tried.
type outage struct {
	tries    int           // that failed in a row
	reported time.Time     // when the last line was logged
	every    time.Duration // until the next line
	open     bool          // a line was logged since the end was followed last
}

const (
	reportFirst   = 10 * time.Second // between the first two lines about one outage; the time doubles with each line
	reportLongest = 10 * time.Minute // between later lines
	tailLongest   = 2 * time.Second  // between tries
	steady        = 10 * time.Second // a consumer that lasted this long ends an outage
)

// report notes that the consumer that was tried at begun is lost now, and returns whether to log it.
func (o *outage) report(begun, now time.Time) bool {
	if now.Sub(begun) >= steady {
		*o = outage{}
	}
	o.tries++
	switch {
	case o.reported.IsZero():
		o.every = reportFirst
	case now.Sub(o.reported) < o.every:
		return false
	default:
		o.every = min(2*o.every, reportLongest)
	}
	o.reported, o.open = now, true
	return true
}

// over notes that the end of the journal is followed again, and returns whether to log it.
func (o *outage) over() bool {
	was := o.open
	o.open = false
	return was
}

// pause is how long to wait before the next try.
func (o *outage) pause() time.Duration {
	return min(tailPause<<min(o.tries-1, 10), tailLongest)
}

// Reason is why something failed, for logs: without a connection nothing is sent, which nats.go reports as a full buffer.
func Reason(err error) string {
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		return "no connection to NATS"
	}
	return events.LogText(err)
}
