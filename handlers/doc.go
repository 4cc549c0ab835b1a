// Package handlers turns inbound messages into journal records.
//
// [Handlers.Handle] decodes a message and passes it to the handler of its kind (handlers.go), which returns an
// [inbound.Disposition]: the worker settles the message, a handler never does. No message is dropped silently: what
// cannot be decoded becomes a dead letter, what can be decoded ends in a response.
//
// There is one file for each kind of message: turn.go with the nine steps of a turn, numbered from decoding to the
// acknowledgement, answer.go, expire.go, cancel.go and resume.go. Of the steps, claim.go writes and interprets the
// claim, rejection.go the reasons to end a turn without its tool, response.go the outcome of a tool, and store_room.go
// decides whether the store has room for a new turn. takeover.go continues turns that another worker has claimed, and
// handles messages whose turn has ended. question.go finds the question that a message is about, answer_result.go reports the
// result of an answer, and requeue.go redelivers or defers a message that has to wait.
//
// A running tool call is in package run, the rules of the journal in package idempotency.
package handlers
