package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that the first SIGINT or SIGTERM ends, with the given cause; nil
// is [context.Canceled]. The second signal ends the process with exit code [Killed], after
// lastWords was called, which may be nil.
func Signals(cause error, lastWords func()) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-got
		cancel(cause)
		<-got
		if lastWords != nil {
			lastWords()
		}
		os.Exit(Killed)
	}()
	return ctx
}
