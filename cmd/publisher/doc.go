// Command publisher sends agent turns to the workers and can wait for their outcomes.
//
//	publisher publish turns.jsonl --wait
//	publisher answer CHAT TOOL_CALL_ID JSON
//	publisher cancel --chat CHAT --turn TURN
//	publisher example > turns.jsonl
//
// Exit codes: 0 if everything was published and, with --wait, every turn succeeded; 1 if not; 2 for wrong
// usage or configuration; 130 if a second signal ended it.
package main
