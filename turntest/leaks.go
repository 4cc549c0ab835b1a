package turntest

import (
	"fmt"

	"go.uber.org/goleak"
)

// VerifyNoLeaks runs the tests of m and fails them if a goroutine is left, as
// [goleak.VerifyTestMain] does. It lets one pass that is nobody's fault but nats.go's: an
// object store that has put a blob tells its watcher of the connection to end, and a watcher
// that has not begun by then never hears of it. A worker may leave one of these, of 2 kB, now
// and then when it stores what is too large for a record.
func VerifyNoLeaks(m goleak.TestingM, options ...goleak.Option) {
	goleak.VerifyTestMain(m, append(options, blobWatcher())...)
}

// FindLeaks returns an error that names the goroutines which are left, as [goleak.Find] does,
// but for the one that [VerifyNoLeaks] lets pass.
func FindLeaks(options ...goleak.Option) error {
	if err := goleak.Find(append(options, blobWatcher())...); err != nil {
		return fmt.Errorf("leaks: %w", err)
	}
	return nil
}

func blobWatcher() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
}
