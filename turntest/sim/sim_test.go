package sim_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/turntest/sim"
)

func Example() {
	s, err := sim.New()
	if err != nil {
		panic(err)
	}
	r := s.Run(1)
	fmt.Println("violations:", len(r.Violations))
	// Output: violations: 0
}

// TestSchedules runs -sim.count schedules, or replays the one of -sim.seed.
func TestSchedules(t *testing.T) {
	t.Parallel()
	s, err := sim.New()
	require.NoError(t, err)
	if seed := number(t, flagSeed); seed != 0 {
		r := s.Replay(seed)
		t.Log("\n" + r.String())
		require.Empty(t, r.Violations)
		return
	}
	total := newTotal()
	from, count := number(t, flagFrom), number(t, flagCount)
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < count && !total.failed(); i = next.Add(1) - 1 {
				total.add(s.Run(from + i))
			}
		})
	}
	wg.Wait()
	t.Log(total)
	if total.failed() {
		t.Fatal("\n" + s.Replay(total.bad.Seed).String())
	}
}

// total sums up results.
type total struct {
	mu                               sync.Mutex
	schedules, steps, turns, entries int
	faults                           map[sim.Fault]int
	outcomes                         map[string]int
	bad                              *sim.Result
}

func newTotal() *total { return &total{faults: map[sim.Fault]int{}, outcomes: map[string]int{}} }

func (o *total) add(r sim.Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.schedules++
	o.steps += r.Steps
	o.turns += r.Turns
	o.entries += r.Entries
	for k, n := range r.Faults {
		o.faults[k] += n
	}
	for k, n := range r.Outcomes {
		o.outcomes[k] += n
	}
	if len(r.Violations) > 0 && (o.bad == nil || o.bad.Seed > r.Seed) {
		o.bad = &r
	}
}

func (o *total) failed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bad != nil
}

func (o *total) String() string {
	text := fmt.Sprintf("%d schedules, %d steps, %d turns, tools entered %d times\noutcomes:", o.schedules, o.steps, o.turns, o.entries)
	for _, k := range slices.Sorted(maps.Keys(o.outcomes)) {
		text += fmt.Sprintf(" %s %d,", k, o.outcomes[k])
	}
	text += "\nfaults:"
	for _, k := range slices.Sorted(maps.Keys(o.faults)) {
		text += fmt.Sprintf(" %s %d,", k, o.faults[k])
	}
	return text
}
