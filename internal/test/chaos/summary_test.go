//go:build chaos

package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// summary is the page at the end of a run: each scenario with the worst of its rounds.
type summary struct {
	mu        sync.Mutex
	scenarios map[string]*worst
}

// worst is what a scenario did at worst.
type worst struct {
	rows                              string
	runs, turns, violations           int
	publishGap, responseGap, recovery time.Duration
}

// add notes the outcome of a scenario that has come to its end.
func (s *summary) add(sc scenario, r *rig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.scenarios[sc.name]
	if w == nil {
		w = &worst{rows: sc.rows}
		s.scenarios[sc.name] = w
	}
	w.runs++
	w.turns += r.outcome.turns
	w.violations += len(r.outcome.violations)
	w.publishGap = max(w.publishGap, r.load.Gap())
	w.responseGap = max(w.responseGap, r.outcome.responseGap)
	w.recovery = max(w.recovery, r.recovered)
}

// String returns the page.
func (s *summary) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	turns, violations := 0, 0
	short := func(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
	fmt.Fprintf(&b, "%-40s %-9s %5s %7s %10s %12s %12s %12s\n", "scenario", "rows", "runs", "turns", "violations",
		"no publish", "no response", "recovery")
	for _, name := range slices.Sorted(maps.Keys(s.scenarios)) {
		w := s.scenarios[name]
		turns, violations = turns+w.turns, violations+w.violations
		fmt.Fprintf(&b, "%-40s %-9s %5d %7d %10d %12s %12s %12s\n", name, w.rows, w.runs, w.turns, w.violations,
			short(w.publishGap), short(w.responseGap), short(w.recovery))
	}
	return fmt.Sprintf("CHAOS: %d turns in %d scenarios that came to their end, %d violations\n%s", turns, len(s.scenarios), violations, b.String())
}
