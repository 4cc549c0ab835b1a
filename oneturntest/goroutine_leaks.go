package oneturntest

import "go.uber.org/goleak"

// knownLeak is a goroutine of nats.go: an object store that has stored a blob asks its watcher
// of the connection to end, and a watcher that has not started by then never ends. A worker may
// leave one of these, of 2 kB, now and then when it stores a payload that is too large for a
// record.
const knownLeak = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

// VerifyNoLeaks runs the tests of m and fails them if a goroutine is left, as
// [goleak.VerifyTestMain] does, except one that nats.go may leave when a blob is stored.
func VerifyNoLeaks(m goleak.TestingM, options ...goleak.Option) {
	goleak.VerifyTestMain(m, append(options, goleak.IgnoreAnyFunction(knownLeak))...)
}
