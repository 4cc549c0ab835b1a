//go:build failpoints

package crash_test

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// summary is what the cells of a run came to, a row for each test. Nothing in them is random, so
// there is no seed to try again with.
type summary struct {
	mu   sync.Mutex
	rows map[string]*tally
}

// tally of one cell, or of all cells of a test.
type tally struct {
	cells, turns, violations, failed int
	struck                           map[string]int // kills, stops and lost writes by their point
}

var page = &summary{rows: map[string]*tally{}}

// add counts a cell to its test.
func (s *summary) add(test string, c *tally) {
	name, _, _ := strings.Cut(test, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[name]
	if row == nil {
		row = &tally{struck: map[string]int{}}
		s.rows[name] = row
	}
	row.cells, row.turns, row.violations, row.failed = row.cells+c.cells, row.turns+c.turns, row.violations+c.violations, row.failed+c.failed
	for point, n := range c.struck {
		row.struck[point] += n
	}
}

// String is the page, one row a test.
func (s *summary) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%-62s %6s %7s %7s %11s  %s\n", "test", "cells", "failed", "turns", "violations", "kills, stops and lost writes at each point")
	for _, name := range slices.Sorted(maps.Keys(s.rows)) {
		r := s.rows[name]
		fmt.Fprintf(&b, "%-62s %6d %7d %7d %11d  %s\n", name, r.cells, r.failed, r.turns, r.violations, counts(r.struck))
	}
	return b.String()
}

// counts reports how often a worker was struck at each point.
func counts(struck map[string]int) string {
	var parts []string
	for _, point := range slices.Sorted(maps.Keys(struck)) {
		parts = append(parts, fmt.Sprintf("%s %d", point, struck[point]))
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

// logSummary logs the result of a cell when it is over, and counts it.
func (r *rig) logSummary(t *testing.T) {
	t.Helper()
	c := &tally{cells: 1, turns: len(r.accepted), violations: r.violations, struck: map[string]int{}}
	byEffect := map[string]int{} // of the point
	if t.Failed() {
		c.failed = 1
		const most = 6000 // bytes of the workers' log
		if log, err := os.ReadFile(r.log()); err == nil {
			t.Logf("log of the workers: %s", log[max(0, len(log)-most):])
		}
	}
	f, err := os.Open(r.strikes())
	if err == nil {
		defer f.Close()
		for scan := bufio.NewScanner(f); scan.Scan(); {
			if fields := strings.Fields(scan.Text()); len(fields) == 4 {
				c.struck[fields[0]]++
				byEffect[fields[0]+" "+fields[1]]++
			}
		}
	} else {
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	page.add(t.Name(), c)
	t.Logf("%s: %d turns, %d violations; struck at %s", t.Name(), c.turns, c.violations, counts(byEffect))
}
