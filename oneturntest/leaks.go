package oneturntest

import (
	"fmt"
	"os"

	"go.uber.org/goleak"
)

// knownLeak is a goroutine that is nobody's fault but nats.go's: an object store that has put
// a blob tells its watcher of the connection to end, and a watcher that has not begun by then
// never hears of it. A worker may leave one of these, of 2 kB, now and then when it stores
// what is too large for a record.
const knownLeak = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

// VerifyNoLeaks runs the tests of m and fails them if a goroutine is left, as
// [goleak.VerifyTestMain] does, but for one that nats.go may leave when a blob is stored.
func VerifyNoLeaks(m goleak.TestingM, options ...goleak.Option) {
	goleak.VerifyTestMain(m, append(options, goleak.IgnoreAnyFunction(knownLeak))...)
}

// FindLeaks returns an error that names the goroutines which are left, as [goleak.Find] does,
// but for the one that [VerifyNoLeaks] lets pass.
func FindLeaks(options ...goleak.Option) error {
	if err := goleak.Find(append(options, goleak.IgnoreAnyFunction(knownLeak))...); err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	return nil
}

// LeakChecked is the same for who ends the test process itself, as testscript does.
type LeakChecked struct{ M goleak.TestingM }

// Run runs the tests and returns the exit code.
func (l LeakChecked) Run() int {
	code := l.M.Run()
	if code != 0 {
		return code
	}
	if err := FindLeaks(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
