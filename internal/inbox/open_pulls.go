package inbox

import (
	"slices"
	"time"
)

// pulls are the requests that the server has not ended yet, oldest first: it serves them in that
// order. The server reports the end of a pull, unless its queue of pulls was full: such a pull
// is dropped without a reply. No pull counts for longer than it can live.
type pulls struct{ open []pulled }

type pulled struct {
	n  int           // how many messages it may still bring
	by time.Duration // when it has ended at the latest
}

// add records a pull for n messages.
func (p *pulls) add(n int, now time.Duration) {
	p.open = append(p.open, pulled{n, now + pullExpiry + 2*heartbeat})
}

// took records that n messages have arrived, or will not.
func (p *pulls) took(n int) {
	for n > 0 && len(p.open) > 0 {
		first := &p.open[0]
		taken := min(n, first.n)
		first.n -= taken
		n -= taken
		if first.n == 0 {
			p.open = p.open[1:]
		}
	}
}

// expire forgets the pulls that have ended without a status.
func (p *pulls) expire(now time.Duration) {
	p.open = slices.DeleteFunc(p.open, func(x pulled) bool { return now > x.by })
}

// total is how many messages may still arrive.
func (p *pulls) total() (n int) {
	for _, x := range p.open {
		n += x.n
	}
	return n
}
