// Command worker consumes agent turns from NATS and runs the tools that they call for.
//
//	worker --workflows DIR              with a NATS server of its own
//	worker --workflows DIR --nats URL   on a server of yours, after turnctl provision
//
// Exit codes: 0 after a drain, 1 when something failed, 2 for wrong usage or configuration,
// 130 when a second signal ended a drain at once.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/oneturn/oneturn/internal/memory"
)

func main() {
	memory.Pace(os.LookupEnv, memory.ContainerLimit)
	os.Exit(run(signals(), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// signals returns a context that the first SIGINT or SIGTERM ends; the second one ends the
// process. What was running then is in the journal, for other workers to go on with.
func signals() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-got
		cancel()
		<-got
		os.Exit(exitKilled)
	}()
	return ctx
}
