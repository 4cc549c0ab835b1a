//go:build chaos

package chaos_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var (
	minutes = flag.Float64("chaos.minutes", 0, "repeat the scenarios with other seeds for so long; 0: each once")
	seed    = flag.Uint64("chaos.seed", 0, "seed of the first round; 0: a random one")
)

// scenario is a series of faults on a separate rig.
type scenario struct {
	name  string
	rows  string // fault rows that it shows to hold
	setup setup
	run   func(r *rig)
}

// TestChaos runs every scenario at least once. -run=TestChaos/round/kill chooses by name.
func TestChaos(t *testing.T) { //nolint:tparallel // the scenarios of a round run at the same time, the rounds do not
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(rand.Uint32())
	}
	end := time.Now().Add(time.Duration(*minutes * float64(time.Minute)))
	scenarios := slices.Concat(clusterScenarios(), membershipScenarios(), upgradeScenarios(), partitionScenarios(), networkScenarios(), workerScenarios(), stormScenarios(), zombieScenarios(), vanishScenarios(), diskScenarios())
	page := &summary{scenarios: map[string]*worst{}}
	defer func() { t.Log(page) }()
	defer removeBase()
	for round := first; ; round++ {
		t.Run(fmt.Sprintf("round-%d", round), func(t *testing.T) {
			t.Logf("again with: make chaos CHAOS=brief CHAOSFLAGS=-chaos.seed=%d", round)
			for _, s := range scenarios {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					r := newRig(t, round, s.setup)
					s.run(r)
					page.add(s, r)
				})
			}
		})
		if t.Failed() || time.Now().After(end) {
			return
		}
	}
}
