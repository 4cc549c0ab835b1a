package harness

import (
	"fmt"
	"os"

	"go.uber.org/goleak"
)

// knownLeak is the goroutine of nats.go that oneturntest.VerifyNoLeaks allows.
const knownLeak = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

// FindLeaks returns an error that names the goroutines that are left, as [goleak.Find] does,
// except the one that oneturntest.VerifyNoLeaks allows.
func FindLeaks(options ...goleak.Option) error {
	if err := goleak.Find(append(options, goleak.IgnoreAnyFunction(knownLeak))...); err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	return nil
}

// LeakChecked runs tests as oneturntest.VerifyNoLeaks does, for a caller that ends the test
// process itself, such as testscript.
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
