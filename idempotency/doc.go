// Package idempotency is the turn journal: the record of every agent turn, and the rules by
// which workers own one.
//
// A turn's record is a handful of facts, each created once under its own key of a JetStream
// KV bucket: `tool_call` is the claim, `tool_response` the end, and both are the events that
// subscribers see. Whoever creates a key owns the fact. Nothing is ever updated, so no read
// decides anything: a [Journal] acts on what a create returned.
//
// Records expire with the retention of the bucket, one by one, the claim first. A key that is
// claimed after that is a new turn. What still stands of its former life has a lower sequence than
// the new claim: it is not read, and a create replaces it.
//
// The lease of a claim is the inbound message it came from: as long as its worker keeps that
// message in progress, JetStream gives it to nobody else. A worker that receives it again
// with a higher delivery number may take the turn over; no clocks are compared.
//
// # Questions
//
// A tool may ask people and wait for days. A question is a handful of records more:
//
//	ask.<id>      the question, an event: whoever comes to it first
//	answer.<id>   what decides it: an answer, the end of its time, a cancel; the first one stands
//	ack.<id>      an event that follows from that
//	taken.<id>    the run that is about to hand it to its tool
//	step.<id>     the result of a named step of the tool
//	park.<epoch>  how an epoch ended: its owner let go (parked), something was stored for it
//	              (woken), or another worker takes it over (sealed)
//
// The owner calls, in this order: [Journal.Ask] when the tool asks, which also tells what is
// known of the answer. While it is open, wait in memory: [Journal.Look] when the live copy of
// the ack arrives and every few seconds. When all that the tool still does is to wait, and has
// done so for a while, or the worker drains, [Journal.Park] with every open question and all
// that a resume needs, except for a tool with effect unsafe. True: acknowledge, and forget the
// run. False: look again at all of them. Once a question is decided, [Journal.Take], and only
// then give the reply to the tool, an expiry like an answer. Around a named step,
// [Journal.StepResult] before it and [Journal.Step] behind it. At last [Journal.Finish], as for
// every turn. The Hold that Park changes is the one to go on with. An error of all these is
// either an [events.Error], whose code is how to end the turn now, or the run is over: stop the
// tool, and neither acknowledge nor nak the message. All take the context of the delivery
// ([Journal.Finish] one that outlives it), which ends when the lease is lost. Two runs of a turn
// may overlap, so nothing but these records tells a tool what it may do.
//
// Whoever handles an answer or the end of a question's time calls [Journal.Answer], which does
// all there is to do, in an order that a crash at any point leaves to the next delivery: holds
// the answer against the stored question, stores it, closes the question, and brings the word to
// the owner. A worker that could not run the tool (unknown workflow) should give the message back
// before that. The verdict is for the sender: nak early ones with a delay, for two minutes at
// most, and acknowledge all others as the decision says. Run is a turn that was parked: enter the
// tool with [Turn.State] of the decision's turn; the message is its lease and is acknowledged
// when the turn has its response or is parked again. Conclude ends it with the code. Signalled
// and Done are acknowledged, Leave is left. A cancel is [Journal.Cancel], then [Journal.Claim]
// with Signal and Ack, which closes the open questions and wakes in the same way.
//
// A tool with effect replay is entered again while one of its questions is open, and only if no
// code behind an answer would run twice: each answer that an earlier run took was followed by a
// question that is open now, or that run parked. Other effects are entered again in any case.
// Decisions that say interrupted are how such a turn ends.
//
// The package knows neither tools nor manifests. [Journal] works on a [Store]: package
// kvstore is the real one, package internal/test/storetest has one in memory and the suite that both pass.
package idempotency
