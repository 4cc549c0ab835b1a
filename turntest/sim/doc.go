// Package sim searches for schedules that break the promise of oneturn. It runs the real
// journal and the real handlers (packages idempotency, handlers and engine) on a simulated
// store, queue and clock, one step at a time, in an order that a seed decides.
//
// One schedule is two or three workers, one to three turns and a handful of faults: a worker
// is killed, paused for longer than its leases, drained, or restarted with other manifests; a
// write has an unknown outcome and lands at once, later or never; a read is stale; a rival
// write is undecided; an acknowledgement is lost or late; signs of life are lost, so that a
// message is delivered again beside its owner; the server forgets delivery numbers; a turn is
// published again under another sequence, with other data, or too late; a cancel races it; its
// message vanishes, and a resume, which anybody may send, finds it. Each operation on the
// store, the queue, the dead letters and in a tool is a point where the worker may be stopped,
// killed or overtaken.
//
// When the schedule has used up its faults, everything heals and the queue has to drain; sweeps
// ask for a resume of what then has no response. Then the checker compares the journal with the
// ledger, which the tools keep outside of all that:
//
//   - each turn has exactly one response, and its tool_call stands before it;
//   - a tool whose claim says unsafe, or replay without a question, was entered at most once;
//   - a turn that was claimed with a verdict was never entered and ends with that verdict;
//   - data that lost the turn key to other data was never run, and became a dead letter;
//   - a response that says ok comes from a run that returned that result;
//   - interrupted only if the delivery that claimed the turn was hit by a fault, cancelled only
//     if somebody cancelled, and not entered by a takeover that came after the cancel;
//   - epochs count up by one, fencing tokens grow with them, the idempotency key stays;
//   - no message was settled before its turn had a response or another message held it, except
//     where a sweep finds the turn: its message vanished, or a resume was settled too early;
//   - nothing is left in the queue.
//
// A violation comes with its seed, and the seed with the whole schedule:
//
//	go test ./turntest/sim -run TestSchedules -sim.seed=4711 -v
//
// `make sim` runs 20,000 schedules. `make mutants` plants one fault after the other in the
// real code (package internal/mutant, build tag mutants) and demands that the schedules find
// each: a simulation that finds nothing proves nothing until it has been seen to find
// something.
//
// What is not simulated: the wire and the server themselves (package idempotency/storetest
// and the tests with a real server), questions to people, and time in the engine, which only
// bounds tools.
package sim
