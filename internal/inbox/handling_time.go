package inbox

import "time"

// fastMedian is the median handling time below which messages are pulled ahead of free slots.
const fastMedian = 50 * time.Millisecond

// handlingTime estimates the median handling time in constant space: each sample moves the estimate
// by a tenth towards it. It starts slow, so that no messages are pulled ahead before it is known.
type handlingTime struct{ median time.Duration }

func newHandlingTime() handlingTime { return handlingTime{median: 2 * fastMedian} }

func (p *handlingTime) add(d time.Duration) {
	step := max(p.median/10, 10*time.Microsecond)
	if d < p.median {
		p.median -= step
	} else {
		p.median += step
	}
}

func (p *handlingTime) fast() bool { return p.median < fastMedian }
