// Package idempotency has the rules by which workers own agent turns, ask questions in them and end them.
//
// What is known of a turn are records, each created once under a separate key of the journal ([Store]). The writer that
// creates a key decides; no read makes a worker the owner. A [Journal] therefore acts on the result of a create. The terms of
// this table are explained below it:
//
//	record               created by                            a refused create means
//	tool_call            [Journal.Claim], before the tool      the turn is claimed: a duplicate, or a delivery that may take over
//	tool_response        [Journal.Finish]                      the turn has ended: this result is late and is dropped
//	cancel               [Journal.Cancel]                      the turn is cancelled already
//	takeover.<n>         whatever begins epoch n, see below    another message owns epoch n: read again; in Park, the run is lost
//	park.<n>             [Journal.Park], a takeover, a signal  epoch n has ended as the stored record states
//	ask.<id>             [Journal.Ask]                         the question was asked before: the stored one stays
//	answer.<id>          [Journal.Answer], a cancel            the question is decided: the first answer stands
//	ack.<id>             whatever decides the question         the event exists already
//	taken.<id>           [Journal.Take]                        another run has received the answer
//	step.<id>            [Journal.Step]                        the stored result is the result of the step
//	show, dismiss        [Journal.Show], [Journal.Dismiss]     stored before: ignored
//	program, result      [Journal.StoreProgram], StoreResult   the stored one is the program of the turn, or its result
//	delta.<n>            [Journal.Delta]                       the stored one is not of this run: it stores no response
//	reused.<fingerprint> [Journal.ChooseKey]                   the key of this data is chosen already
//
// # Terms
//
// A message (of a turn, an answer, an expiry, a cancel, a resume) is delivered until it is acknowledged. The owner of a
// turn holds a lease: a message that its worker keeps in progress, as claims and takeovers record it ([Lease]). JetStream
// delivers it to another worker only after that stops, with a higher delivery number, and that delivery may take the turn
// over. No clocks are compared. A message of the turn that is not its lease is a duplicate, whatever its delivery number.
// (A deferred copy of the lease is recognised by the handlers, docs/journal.md#rule-2.)
//
// The effect of a tool states whether it may be entered again: unsafe never; replay while it waits for an answer; keyed,
// idempotent and none always. The claim records it; of that and what a new owner's manifests state today the stricter counts,
// which is the one that allows less.
//
// An epoch is one ownership of a turn. Epoch 1 begins with the claim, epoch n with takeover.<n>, which is created by
//   - the redelivery of the lease of epoch n-1, whose owner died or lost it (takeover.go)
//   - a resume: a sweep, the regular search for turns whose message is gone, publishes one to continue such a turn (resume.go)
//   - an answer, expiry or cancel of a turn that is parked: it becomes the lease (answer.go)
//   - the owner of epoch n-1, under the same lease, when it was woken and has to wait again (park.go)
//
// The sequence of the record that begins an epoch is its fencing token: it grows with every owner, so another system can
// refuse the calls of an earlier one. A [Hold] is the right of a delivery to write to a turn, either as the owner of an epoch
// or as a worker that only ends the turn. The latter begins no epoch and has no fencing token; its response names the newest
// epoch that it has read.
//
// A run is one execution of the tool by an owner. Its nonce, a random text, marks the records that only this run may have
// written: claim, takeover, park, taken, delta and response. A record that is identified by its content or by its key
// alone (cancels, questions, answers, acks, steps, surfaces, sealed and woken epochs, chosen keys) has a fresh nonce. A
// turn is parked when its owner has stored that it waits for a question; then the owner acknowledges the message, and no
// run waits.
//
// An answer, expiry or cancel whose message is not the lease signals the owner: it either wakes one that holds the turn, or
// continues a turn that is parked, as its next owner.
//
// A generation is what one turn stored under its key. Records expire one by one, the claim first; then the key is free,
// and the next claim begins a generation. The fingerprint is a hash of the data of a turn. A reused key is the second key
// under which other data of a used key runs, if the workflow permits it (both in reused_key.go). A question is named by an
// id, which may be any text; the token of the id is its form in keys ([subjects.Token]). A surface is what a tool displays
// without a question. A pool is a group of workers with a separate queue.
//
// The outcome of a record (header Oneturn-Verdict) is what it decides: in a claim, the code of a turn that fails before its
// tool; in a park record, how the epoch ended; in an answer and its ack, how the question was decided; in the text of a message, what
// follows from it; in its turn record, where its turn is.
//
// The leader is the server that orders the writes of the journal, and all reads are answered by it. A leader that was
// replaced and has not detected that answers for a moment from before the newest records: a stale read. A turn is corrupt if
// one of its records cannot be read; it is ended and never run. It is oversized if it has more records than one read returns;
// then only the records that end it are read.
//
// # Reading order
//
//	journal.go     create, the one write of all rules; Hold
//	claim.go       one worker gets the turn; what all others do with their message
//	takeover.go    a turn whose owner is gone: end the old epoch, begin the next with this message, decide by a new read
//	finish.go      the end of a turn, the context changes that count with it, and the erasing of secrets after it
//	answer.go      an answer, an expiry or a cancel: store it, close the question, signal the owner
//	park.go        a run that only waits releases its turn
//
// Then: record.go (records, leases, the store), turn.go (a turn as one read shows it), call.go (a call of it), program.go (the steps
// of a program), message.go (messages of agents and users), read.go (reads), question.go (what a running tool calls), cancel.go, resume.go, reused_key.go (turn keys
// used again), ended_turns.go (a memory of turns that have ended). Comments name the rules of
// docs/journal.md, which has the reason and the tests of each.
//
// # A run that asks questions
//
// The run calls [Journal.Ask], which returns the answer if there is one. While the question is open, it waits in memory
// and calls [Journal.ReadReply] when the live copy of the ack, which the bucket publishes, arrives and every few seconds.
// A run that only waits calls [Journal.Park] after a while: if it returns true, the message is acknowledged and the run
// ends; if it returns false, a question was decided and the run reads the replies again. Before it passes an answer or
// expiry to the tool it calls [Journal.Take]. At a named step it calls [Journal.StepResult] first and [Journal.Step]
// afterwards. It ends with [Journal.Finish]. An error of these is either an [events.Error], whose code ends the turn now,
// or any other: the run has lost its turn, or what is stored is not known, or Park was called for a turn that cannot be
// parked. Then the run stops the tool and neither acknowledges nor naks the message. (Finish has two more, see there.)
//
// The worker that receives an answer or expiry calls [Journal.Answer]. Every step of it may be repeated: a crash at any point
// leaves the rest to the next delivery. The worker that receives a cancel calls [Journal.Cancel], which stores it, and then
// [Journal.Claim] with Signal and RejectCode cancelled: a turn that was not claimed is claimed and ends with that code, the
// owner of any other is signalled.
//
// The package knows no tools, manifests or servers. Package kvstore implements [Store] on JetStream; package
// internal/test/storetest has a store in memory and the tests that both pass.
package idempotency
