// Package sweep finds the turns that no worker will end any more and publishes a resume for each.
//
// In reading order:
//
//   - sweep.go: the settings of a [Sweep]. [Sweep.Check] determines the [Condition] of one turn, [Sweep.Resume]
//     publishes its resume. turnctl repair runs the same code.
//   - message.go: [Sweep.CheckMessage], the same for a message of an agent or a user.
//   - lease_held.go: whether the message of a lease is still in its stream.
//   - round.go: [Sweep.Run] is one sweep over the whole journal. It reads the new headers, then checks the open turns.
//   - read_headers.go: the headers of the records that no sweep has read. new_records.go: which open turns have some.
//   - check_page.go: the checks of the open turns of a page, and what follows from them.
//   - state.go: what one sweep leaves for the next. pages.go: where that is stored, in a bucket or in memory.
//
// Package timers decides which worker sweeps, and when.
package sweep
