// Command publisher hands agent turns to the workers and can wait for their outcomes.
//
//	publisher publish turns.jsonl --wait
//	publisher cancel --chat CHAT --turn TURN
//	publisher example > turns.jsonl
//	publisher demo
//
// Exit codes: 0 when everything was published and, with --wait, every turn ended with success;
// 1 when not; 2 for wrong usage or configuration; 130 when a second signal ended it.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(signals(), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}

// signals returns a context that the first SIGINT or SIGTERM ends; the second one ends the
// process.
func signals() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-got
		cancel(errors.New("a signal ended it"))
		<-got
		os.Exit(exitKilled)
	}()
	return ctx
}
