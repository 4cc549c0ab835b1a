// Package mutants is the catalogue of faults that tests plant in the product to prove that they would find them.
//
// A [Fault] (fault.go) is one or more edits of the source text (journal.go, programs.go, inbox.go, handlers.go, messages.go, feed.go, gateway.go) and
// the tests that have to fail with it. [Plant] applies all edits to a copy of the sources (plant.go), and the program in plant writes the copies and an
// overlay for the go command: `go test -overlay=bin/mutants/overlay.json`. The product itself holds no trace of them.
//
// Every edit is guarded: planted("name") is true if the variable ONETURN_MUTANT names the fault, so one build serves all
// faults. The same overlay adds the failpoints inside the rules of package idempotency (points.go); the other
// failpoints are in the code that calls them, see package failpoint.
//
// With the build tag mutants, [EachIsCaught] and [CatchIn] run the tests of the calling package again with a fault
// planted (caught.go). TestEveryFaultFitsTheSource, which needs no tag, fails when a line that an edit names has changed.
package mutants
