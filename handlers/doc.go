// Package handlers turns inbound messages into journal records.
//
// [Handlers.Handle] decodes a message and passes it to the handler of its kind (handlers.go), which returns an
// [inbound.Disposition]: the worker settles the message, a handler never does.
//
// # Files
//
// In reading order:
//
//   - handlers.go: dependencies, and which handler a message goes to
//   - turn.go: the nine steps of a turn, numbered from decoding to the acknowledgement
//   - claim.go: step 6, the claim, the key it is stored under, and claims that fail
//   - response.go: what steps 7 and 8 build: the call of the tool, and the response with its outcome
//   - end.go: the ways to end a turn, how long a worker tries to store a response, the reasons to end without the tool
//   - takeover.go: a turn that was claimed before continues, or its message is acknowledged, such as a duplicate
//   - requeue.go: messages that have to wait: delays, negative acknowledgements, deferrals
//   - store_room.go: whether the store has room for a new turn
//   - answer.go, expire.go, cancel.go, resume.go: the handlers of the other kinds of messages; cancel.go also finds the
//     turn that a cancel is about
//   - program.go: step 7 of a turn whose tool is a program, as the host of its runner
//   - program_turn.go: what a worker knows of such a turn in addition
//   - program_stored.go: the record that has the program
//   - program_step.go, program_step_end.go: one step, up to its tool and after it
//   - program_agents.go: the planner, the approval and the responder
//   - program_refused.go: programs that are not run
//   - program_end.go, program_partial.go, program_texts.go: the result of a program, also without a run of it, and its texts
//   - program_usage.go: the limits of all steps of a turn together
//   - program_states.go, program_observe.go: the states of a program for tracers, its spans and metrics
//   - program_retry.go: a retry of such a turn, which keeps the results of finished calls
//   - message.go: messages of agents and users, up to their claim; message_read.go: the object in one; message_follow.go: what follows
//     from it; message_turn.go: its turn; message_correct.go, message_correct_reply.go: corrections of outputs; message_handoff.go,
//     message_decider.go: the next speaker; message_observe.go: its metrics; message_workflow.go: workers without its workflow;
//     message_refused.go: what can never be stored
//   - question.go: the question that an answer or an expiry is about
//   - answer_variables.go: the context variables that an answer sets; variable_tools.go: those that tools read
//   - answer_result.go: the result of an answer, and its report to the sender
//
// # Words
//
// A turn ends with a response: endWithOutcome, endWithCode, endStopped and endWithoutContext lead to finish, which stores
// it (end.go has the order). A turn that was claimed before continues: continueOwn, continueParked and resumeTurn lead to
// continueTurn (takeover.go). A message that has to wait is requeued: requeue nacks it with a delay or, beyond the budget,
// defers it. A message whose outcome is unknown is redelivered: redeliver leaves it (inbound.Left) until its ack wait is
// over.
//
// # Messages without a response
//
// A message that names no chat and turn, or is on the wrong subject, becomes a dead letter. Any other turn gets a response,
// also one that cannot be decoded further, with these exceptions, which metrics count:
//
//   - an event without auto_tool_mode, whose tool the application calls itself
//   - a rejected turn of a workflow with `compat: {silent: true}`, if it was never claimed
//   - a duplicate of a turn that another message holds, or that has ended
//   - a conflict: a turn key that was used before with other data becomes a dead letter, and a live event reports it
//   - a turn that no worker could claim or even reject, or that has to wait and cannot be requeued: a dead letter
//   - a turn whose stored response cannot be read: a dead letter
//
// Answers, expiries, cancels and resumes need no response: they change a turn, which has one.
//
// A running tool call is in package run, the rules of the journal in package idempotency.
package handlers
