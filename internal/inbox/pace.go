package inbox

import "time"

// fastMedian is the median handling time below which messages are pulled ahead of free slots.
const fastMedian = 50 * time.Millisecond

// pace estimates the median handling time in constant space: each sample moves the estimate
// by a tenth towards it. It starts slow, so that nothing is hoarded before it is known.
type pace struct{ median time.Duration }

func newPace() pace { return pace{median: 2 * fastMedian} }

func (p *pace) note(d time.Duration) {
	step := max(p.median/10, 10*time.Microsecond)
	if d < p.median {
		p.median -= step
	} else {
		p.median += step
	}
}

func (p *pace) fast() bool { return p.median < fastMedian }
