// Package inbox pulls messages from a JetStream work queue for a fixed number of slots, keeps
// every message it holds in progress, and passes each to a handler that settles it.
//
// It pulls for free slots only, and ahead of them while messages are handled fast, so that a
// slow worker does not hold messages that another could handle. One message sequence is handled
// once at a time in a process: a redelivery of one that still runs here renews its lease.
// [Inbox.Run] drains when its context ends.
//
// The path of a message: [Inbox.Run] (inbox.go) starts all parts; pull.go requests the message and receives its [Delivery]
// (open_pulls.go counts what is requested, handling_time.go determines whether to pull ahead of free slots, arrival_age.go
// bounds how old an arrival is); slots.go starts a handler when a slot is free, and frees the slot of a
// handler that waits; delivery.go and delayed_nak.go settle it. Meanwhile heartbeat.go keeps the lease, whose rules are
// in ownership.go, and ends it when it is lost. drain.go ends it all.
//
// # For the simulation
//
// [Steps] and [Link] (simulation_steps.go) run the same code without goroutines and clock. Only internal/test/sim and
// tests use them; a worker does not.
package inbox
