package mutants

import (
	"slices"
	"strings"
)

// Variable is the environment variable that names the planted fault. Without it the code behaves as written.
const Variable = "ONETURN_MUTANT"

// Overlaid reports whether this build has the overlay: an edit makes it true.
const Overlaid = false

// Fault is a bug that tests have to find.
type Fault struct {
	Name     string
	Breaks   string // what the faulty code does
	Edits    []Edit
	CaughtBy []string // a suite, or a suite and its test: "sim", "crash:^TestName$"
}

// Suites of tests that find faults.
const (
	Sim         = "sim"         // simulated schedules, internal/test/sim
	Crash       = "crash"       // tests of real workers, internal/test/crash
	Chaos       = "chaos"       // scenarios of real workers, internal/test/chaos
	Gateways    = "gateways"    // gateways under clients, internal/test/gatewaychaos
	Sweeps      = "sweeps"      // simulated journals of package internal/sweep
	Handlers    = "handlers"    // named tests of package handlers
	Store       = "store"       // named tests of package internal/store
	Sweep       = "sweep"       // named tests of package internal/sweep
	Idempotency = "idempotency" // named tests of package idempotency
	Program     = "program"     // named tests of package internal/program
	Feed        = "feed"        // named tests of package internal/feed
)

// Edit replaces a text that occurs exactly once in a file of the product. From and To have the same number of lines, so
// that positions in stack traces stay right.
type Edit struct {
	File     string // from the root of the repository
	From, To string
}

// All returns every fault.
func All() []Fault {
	return slices.Concat(journal(), questions(), programs(), inbox(), handlers(), messages(), feeds(), gateways())
}

// CaughtIn returns the faults that a suite has to find.
func CaughtIn(suite string) []Fault {
	return slices.DeleteFunc(All(), func(f Fault) bool {
		_, found := f.Test(suite)
		return !found
	})
}

// Test returns the test of a suite that finds the fault, "" for any of it.
func (f *Fault) Test(suite string) (name string, found bool) {
	for _, c := range f.CaughtBy {
		if s, name, _ := strings.Cut(c, ":"); s == suite {
			return name, true
		}
	}
	return "", false
}
