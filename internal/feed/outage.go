package feed

import "time"

// outage decides how often the loss of the end of the journal is reported, and how soon it is looked for again.
type outage struct {
	tries    int       // that failed in a row
	reported time.Time // when the last line was written
	every    time.Duration
	open     bool // a line was written since the end was followed last
}

// Times between lines about one outage.
const (
	reportFirst   = 10 * time.Second
	reportLongest = 10 * time.Minute
	tailLongest   = 2 * time.Second  // between tries
	steady        = 10 * time.Second // a consumer that lived so long ends an outage
)

// report notes that a consumer that was tried at begun was lost now, and returns whether to write a line.
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

// over returns whether to write a line that the end is followed again.
func (o *outage) over() bool {
	was := o.open
	o.open = false
	return was
}

// pause is how long to wait before the next try.
func (o *outage) pause() time.Duration {
	return min(tailPause<<min(o.tries-1, 10), tailLongest)
}
