// Command publisher sends agent turns to the workers and can wait for their outcomes.
//
//	publisher publish turns.jsonl --wait
//	publisher message CHAT TEXT --workflow WORKFLOW --agent AGENT
//	publisher answer CHAT TOOL_CALL_ID JSON
//	publisher cancel CHAT TURN
//	publisher example > turns.jsonl
//
// Exit codes: 0 success, 1 failure (the help of each command specifies what succeeds, with and without --wait), 2 wrong
// usage or configuration, 130 ended by a second signal.
//
// # Files
//
// main.go has the command. publish.go publishes files, which input.go splits into events. message.go publishes what an agent or a user has written,
// message_command.go has the command for a file that holds such an event. answer.go answers questions;
// without a worker, with what answer_without_worker.go reads in the journal. cancel.go requests the end of a turn;
// cancel_warning.go finds out whether it is claimed, and which turn an id means. print.go prints receipts and outcomes. example.go prints turns.
package main
