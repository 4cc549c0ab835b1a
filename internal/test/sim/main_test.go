package sim_test

import (
	"flag"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// Flags of these tests.
const (
	flagSeed  = "sim.seed"
	flagCount = "sim.count"
	flagFrom  = "sim.from"
)

func TestMain(m *testing.M) {
	flag.Uint64(flagSeed, 0, "replay the schedule of this seed and print its trace")
	flag.Uint64(flagCount, 500, "how many schedules to run")
	flag.Uint64(flagFrom, 1, "seed of the first schedule")
	goleak.VerifyTestMain(m)
}

func number(t *testing.T, name string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(flag.Lookup(name).Value.String(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
