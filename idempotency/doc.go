// Package idempotency has the rules by which workers own agent turns, ask questions in them and end them.
//
// What is known of a turn are records, each created once under a separate key of the journal ([Store]). The writer that
// creates a key decides; no read makes a worker the owner. A [Journal] therefore acts on the result of a create:
//
//	record          created by                          a refused create means
//	tool_call       [Journal.Claim], before the tool    another message has claimed the turn: duplicate, or take it over
//	tool_response   [Journal.Finish]                    the turn has ended: this result is late and is dropped
//	cancel          [Journal.Cancel]                    the turn is cancelled already
//	takeover.<n>    a takeover, resume or answer        another message owns epoch n: read the turn again
//	park.<n>        [Journal.Park], a takeover, a wake  epoch n has ended as the stored record states
//	ask.<id>        [Journal.Ask]                       the question was asked before: the stored one stays
//	answer.<id>     [Journal.Answer], a cancel          the question is decided: the first answer stands
//	ack.<id>        whatever decides the question       the event exists already
//	taken.<id>      [Journal.Take]                      another run has received the answer
//	step.<id>       [Journal.Step]                      the stored result is the result of the step
//	show, dismiss   [Journal.Show], [Journal.Dismiss]   stored before: ignored
//	delta.<n>       [Journal.Delta]                     another run of epoch n was first: no response
//	reused.<print>  [Journal.Place]                     the data has its place already
//
// The owner of a turn holds a lease: the inbound message, which its worker keeps in progress. JetStream delivers the
// message to another worker only after that stops, with a higher delivery number, and that delivery may take the turn
// over. No clocks are compared. Each owner has an epoch: 1 for the claim, one more for each takeover. docs/journal.md has
// the rules by number and the proof of each.
//
// # Reading order
//
//	claim.go       one worker gets the turn; what all others do with their message
//	takeover.go    a turn whose owner is gone: seal the old epoch, become the lease of the next, decide by a new read
//	finish.go      the end of a turn, and the context changes that count with it
//	answer.go      an answer, an expiry or a cancel: store it, close the question, wake or resume the turn
//	park.go        a run that only waits releases its turn; what a resume may run again
//
// Then: journal.go (create, the one write of all rules), record.go (records, leases, the store), turn.go (a turn as one
// read shows it), read.go (reads), question.go (what a running tool calls), cancel.go, resume.go (turns whose message is
// gone), place.go (turn keys used again), generation.go (records of an earlier turn under the same key), erase.go
// (secrets).
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
