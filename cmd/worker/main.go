// Command worker consumes agent turns from NATS and runs the tools that they call for.
//
//	worker --workflows DIR              with a NATS server of its own
//	worker --workflows DIR --nats URL   on a server of yours, after turnctl provision
//
// Exit codes: 0 after a drain, 1 when something failed, 2 for wrong usage or configuration,
// 130 when a second signal ended a drain at once.
package main

import (
	"fmt"
	"os"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/memory"
)

func main() {
	cli.Quiet()
	if err := private(); err != nil {
		fmt.Fprintln(os.Stderr, "worker: tools may read the memory of this process:", err)
	}
	memory.Pace(os.LookupEnv, memory.ContainerLimit)
	// What runs when a second signal ends the process is in the journal: a worker takes it over.
	os.Exit(run(cli.Signals(nil, func() {
		fmt.Fprintln(os.Stderr, "worker: second signal: stopped at once; turns that were running are taken over after the ack wait, by other workers "+
			"or by the next one that starts (on the same --store, if the server was embedded)")
	}), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}
