// Command turnctl is for those who operate oneturn: it checks workflow folders, shows turns,
// provisions a server and finds out what is wrong with one.
//
//	turnctl check DIR          faults of the workflow manifests, and what binds to what
//	turnctl tools              what can be called: ls, pin
//	turnctl call TOOL JSON     try one tool
//	turnctl show CHAT TURN     the whole life of one turn
//	turnctl ls                 the newest turns
//	turnctl dead               letters that no worker could handle: ls, show, redrive, drop
//	turnctl repair             end turns whose message is gone
//	turnctl provision          make streams, buckets and consumers
//	turnctl doctor             what is wrong with the server and its set-up
//	turnctl nats-config        accounts and rights for a NATS server
//	turnctl secret-key         a new key for the file of --secret-keys
//	turnctl version            what this binary was built from
//
// Exit codes: 0 all is well, 1 faults were found or the work failed, 2 the command line or
// the settings are wrong. Errors go to standard error, once; results to standard output, as
// text or, with -o json, as one JSON document.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

func main() {
	cli.Quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
