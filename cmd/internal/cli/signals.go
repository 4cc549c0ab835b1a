package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// oneSignal is how long further signals count as the first one: a terminal, and wrappers such as
// timeout, signal both a process and its group, which is one request to end it.
const oneSignal = 300 * time.Millisecond

// Signals returns a context that the first SIGINT or SIGTERM ends, with the given cause; nil
// is [context.Canceled]. A second signal, 300 ms later or more, ends the process with exit code
// [Killed], after lastWords was called, which may be nil.
func Signals(cause error, lastWords func()) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	go func() {
		untilSecond(got, func() { cancel(cause) })
		if lastWords != nil {
			lastWords()
		}
		os.Exit(Killed)
	}()
	return ctx
}

// untilSecond calls first with the first signal and returns with the second.
func untilSecond(got <-chan os.Signal, first func()) {
	<-got
	first()
	at := time.Now()
	for range got {
		if time.Since(at) >= oneSignal {
			return
		}
	}
}
