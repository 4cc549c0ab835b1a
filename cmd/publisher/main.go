// Command publisher hands agent turns to the workers and can wait for their outcomes.
//
//	publisher publish turns.jsonl --wait
//	publisher answer CHAT TOOL_CALL_ID JSON
//	publisher cancel --chat CHAT --turn TURN
//	publisher example > turns.jsonl
//
// Exit codes: 0 when everything was published and, with --wait, every turn ended with success;
// 1 when not; 2 for wrong usage or configuration; 130 when a second signal ended it.
package main

import (
	"errors"
	"os"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

func main() {
	os.Exit(run(cli.Signals(errors.New("interrupted by a signal"), nil), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}
