// Command worker consumes agent turns from NATS and runs their tools.
//
//	worker --workflows DIR              with an embedded NATS server
//	worker --workflows DIR --nats URL   on an external server, after turnctl provision
//
// Exit codes: 0 after a drain, 1 if something failed, 2 for wrong usage or configuration, 130 if a second
// signal ended the drain.
package main

import (
	"fmt"
	"os"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/memory"
)

func main() {
	cli.Quiet()
	if err := makeUndumpable(); err != nil {
		fmt.Fprintln(os.Stderr, "worker: tools may read the memory of this process:", err)
	}
	memory.Pace(os.LookupEnv, memory.ContainerLimit)
	// Turns that run when a second signal ends the process are in the journal: a worker takes them over.
	os.Exit(run(cli.Signals(nil, func() {
		fmt.Fprintln(os.Stderr, "worker: second signal: stopped; running turns are taken over after the ack wait, by other workers "+
			"or by the next one that starts (with the same --store, if the server was embedded)")
	}), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}
