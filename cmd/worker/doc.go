// Command worker consumes agent turns from NATS and runs their tools.
//
//	worker --workflows DIR              with an embedded NATS server
//	worker --workflows DIR --nats URL   on an external server, after turnctl provision
//
// Exit codes: 0 after a drain, 1 if something failed, 2 for wrong usage or configuration, 130 if a second
// signal ended the drain.
package main
