package target

import (
	"fmt"
	"time"
)

// MaxRefill is the longest that a rate may take to have its whole burst free again.
const MaxRefill = 24 * time.Hour

// Interval is the time between two calls at this rate, at least a nanosecond.
func (r Rate) Interval() time.Duration {
	calls := time.Duration(max(r.Calls, 1))
	interval := r.Per / calls
	if r.Per%calls != 0 {
		interval++
	}
	return max(interval, 1)
}

// Size is how many calls may begin at the same time.
func (r Rate) Size() int {
	if r.Burst > 0 {
		return r.Burst
	}
	return max(r.Calls, 1)
}

// Check returns what is wrong with a rate, nil for a valid one and for no limit.
func (r Rate) Check() error {
	switch {
	case r.Calls == 0 && r.Burst == 0:
		return nil
	case r.Calls <= 0 || r.Per <= 0:
		return fmt.Errorf("invalid rate: %d calls in %s: use for example 10/s or 100/m", r.Calls, r.Per)
	case r.Burst < 0:
		return fmt.Errorf("rate: invalid burst %d: use the number of calls that may begin at the same time", r.Burst)
	case r.Size() > int(MaxRefill/r.Interval()):
		return fmt.Errorf("rate: a burst of %d at %d calls in %s would take longer than %s to be free again: write a smaller burst", r.Size(), r.Calls, r.Per, MaxRefill)
	}
	return nil
}
