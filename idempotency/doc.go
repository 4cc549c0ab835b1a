// Package idempotency has the rules by which workers own agent turns, ask questions in them and end them.
//
// What is known of a turn are records, each created once under a separate key of the journal ([Store]). The writer that
// creates a key decides; no read makes a worker the owner. A [Journal] therefore acts on the result of a create:
//
//	record          created by                          a refused create means
//	tool_call       [Journal.Claim], before the tool    another message has claimed the turn: duplicate, or take it over
//	tool_response   [Journal.Finish]                    the turn has ended: this result is late and is dropped
//	cancel          [Journal.Cancel]                    the turn is cancelled already
//	takeover.<n>    whatever begins epoch n, see below  another message owns epoch n: read the turn again
//	park.<n>        [Journal.Park], a takeover, a wake  epoch n has ended as the stored record states
//	ask.<id>        [Journal.Ask]                       the question was asked before: the stored one stays
//	answer.<id>     [Journal.Answer], a cancel          the question is decided: the first answer stands
//	ack.<id>        whatever decides the question       the event exists already
//	taken.<id>      [Journal.Take]                      another run has received the answer
//	step.<id>       [Journal.Step]                      the stored result is the result of the step
//	show, dismiss   [Journal.Show], [Journal.Dismiss]   stored before: ignored
//	delta.<n>       [Journal.Delta]                     it cannot be this epoch's: the run stores no response
//	reused.<data>   [Journal.ChooseKey]                 the key of this data is chosen already
//
// # Terms
//
// A message (of a turn, an answer, an expiry, a cancel, a resume) is delivered until it is acknowledged. The owner of a turn
// holds a lease: a message that its worker keeps in progress. JetStream delivers it to another worker only after that
// stops, with a higher delivery number, and that delivery may take the turn over. No clocks are compared.
//
// An epoch is one ownership of a turn. Epoch 1 begins with the claim, epoch n with takeover.<n>, which is created by
//   - the redelivery of the lease of epoch n-1, whose owner died or lost it (takeover.go)
//   - a resume, the message by which a sweep continues a turn whose message is gone (resume.go)
//   - an answer, expiry or cancel of a turn that is parked: it becomes the lease (answer.go)
//   - the owner of epoch n-1, under the same lease, when it was woken and has to wait again (park.go)
//
// A run is one execution of the tool by an owner. Its nonce, a random text, marks the records that it has written. A turn is
// parked when its owner has stored that it waits for a question, and has acknowledged the message: no run waits for it. An
// answer, expiry or cancel whose message is not the lease signals the owner: it either wakes one that holds the turn, or
// continues one that is parked.
//
// A generation is what one turn stored under its key. Records expire one by one, the claim first; then the key is free, and
// the next claim begins a generation. A reused key is the second key under which other data of a used key runs, if the
// workflow permits it (both in reused_key.go). A surface is what a tool displays without a question. A pool is a group of
// workers with a separate queue.
//
// The outcome of a record (header Oneturn-Verdict) is what it decides: in a claim, the code of a turn that fails before its
// tool; in a park record, how the epoch ended; in an answer and its ack, how the question was decided.
//
// # Reading order
//
//	claim.go       one worker gets the turn; what all others do with their message
//	takeover.go    a turn whose owner is gone: seal the old epoch, become the lease of the next, decide by a new read
//	finish.go      the end of a turn, the context changes that count with it, and the erasing of secrets after it
//	answer.go      an answer, an expiry or a cancel: store it, close the question, wake or continue the turn
//	park.go        a run that only waits releases its turn
//
// Then: journal.go (create, the one write of all rules), record.go (records, leases, the store), turn.go (a turn as one
// read shows it), read.go (reads), question.go (what a running tool calls), cancel.go, resume.go, reused_key.go (turn keys
// used again), ended_turns.go (a memory of turns that have ended). Comments name the rules of
// docs/journal.md, which has the reason and the tests of each.
//
// # A run that asks questions
//
// The run calls [Journal.Ask], which returns the answer if there is one. While the question is open, it waits in memory and
// calls [Journal.ReadReply] when the live copy of the ack arrives and every few seconds. A run that only waits calls
// [Journal.Park] after a while: if it returns true, the message is acknowledged and the run ends; if it returns false, a
// question was decided and the run reads the replies again. Before it passes an answer or expiry to the tool it calls
// [Journal.Take]. At a named step it calls [Journal.StepResult] first and [Journal.Step] afterwards. It ends with
// [Journal.Finish]. An error of these is either an [events.Error], whose code ends the turn now, or the run has lost its
// turn: it stops the tool and neither acknowledges nor naks the message.
//
// The worker that receives an answer or expiry calls [Journal.Answer]. Every step of it may be repeated: a crash at any point
// leaves the rest to the next delivery. A cancel is [Journal.Cancel] and then [Journal.Claim] with Signal.
//
// The package knows no tools, manifests or servers. Package kvstore implements [Store] on JetStream; package
// internal/test/storetest has a store in memory and the tests that both pass.
package idempotency
