// Package sweep finds the turns that no worker will end any more and publishes a resume for each.
//
// [Sweep.Check] determines the [Condition] of one turn (sweep.go), by whether the message that is its lease is still in
// its stream (lease.go). [Sweep.Run] is one sweep over the whole journal (round.go): it reads the headers of the records
// that are new (read.go), notes what they change (updates.go), and checks the open turns page by page (check.go). What
// one sweep knows of open turns is kept for the next one (state.go) in a bucket (pages.go). Package timers decides which
// worker sweeps, and when; turnctl repair runs the same code.
package sweep
