// Command worker consumes agent turns from NATS and runs their tools.
//
//	worker --workflows DIR              with an embedded NATS server
//	worker --workflows DIR --nats URL   on an external server, after turnctl provision
//
// Exit codes: 0 after a drain, 1 if something failed, 2 for wrong usage or configuration, 130 if a second
// signal ended the drain.
//
// # Files
//
// main.go has the command. serve.go starts the parts in order and runs until they end: connection.go (connects to NATS, or
// embeds a server and provisions it), single_worker.go (whether another worker is on the embedded server). start_report.go
// prints what has been started.
// process_protection_*.go keep other processes of the user, such as tools, out of the memory of the worker.
package main
