// Package gatewaychaos checks that no client of a gateway misses an event or gets one twice, whatever breaks. `make gateway-chaos` lets
// hundreds of WebSockets and runs of AG-UI share chats for five minutes, through gateways and workers that are separate processes: they are
// killed, paused and drained, connections are cut and stalled, the NATS server is killed and restarted. Clients connect again
// to any gateway with their cursor, as docs/gateway.md requires. Each one keeps a log of what it got.
//
// The checks need no build tag:
//
//	violations.go  [Verdict]: violations, each of an invariant
//	journal.go     [Journal]: the public records of all chats, as the server has them
//	display.go     what a client of AG-UI has to display of a record: [Item]
//	socket_log.go  [SocketLog]: what one tab got over all its WebSockets, compared with the journal
//	run_log.go     [RunLog]: what one stream of AG-UI showed, compared with the journal
//	run_reader.go  [RunReader]: reads a stream of AG-UI into its log, as clients do, and verifies it
//	memory.go      [Memory]: the memory of a process, and whether it grows
//
// The test itself has the tag chaos. stage_test.go starts the processes (program_test.go); tools_test.go and orchestrator_test.go are
// the tools and the agents; chat_test.go is what a user does in a chat, with WebSockets (socket_test.go) and with AG-UI's client
// (agui_client_test.go); faults_test.go injects the faults. `make gateway-mutants` plants faults in the gateways, which the test has to find.
//
// # Invariants
//
//	G1  a tab gets each visible record of its chat once, in the order of sequences, with its content, and no other
//	G2  a stream of AG-UI shows each message, call and result of its chat once and in order, and follows the protocol
//	G3  the memory of a gateway is flat
//	G4  what a gateway has confirmed is in the journal
//	G5  a gateway answers as documented: statuses, close codes, boundaries
//	G6  every turn ends once nothing is broken any more
package gatewaychaos
