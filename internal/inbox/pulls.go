package inbox

import (
	"slices"
	"time"
)

// pulls are the requests that the server has not ended yet, oldest first: it serves them in that
// order. The server reports the end of a pull, except of one that finds its queue of pulls full:
// that is dropped without a reply. No pull counts for longer than it can live.
type pulls struct{ open []pulled }

type pulled struct {
	n  int           // how many messages it may still bring
	by time.Duration // when it has ended at the latest
}

// add notes a pull for n messages.
func (p *pulls) add(n int, now time.Duration) {
	p.open = append(p.open, pulled{n, now + pullExpiry + 2*heartbeat})
}

// took notes that n messages have come, or will not.
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

// lapse forgets the pulls that have ended without a word.
func (p *pulls) lapse(now time.Duration) {
	p.open = slices.DeleteFunc(p.open, func(x pulled) bool { return now > x.by })
}

// total is how many messages may still come.
func (p *pulls) total() (n int) {
	for _, x := range p.open {
		n += x.n
	}
	return n
}
