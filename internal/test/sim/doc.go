// Package sim searches for schedules that break the promise of oneturn. It runs the code of a
// worker on a simulated server and clock, one step at a time, in an order that a seed decides.
//
// What runs is what workers run:
//
//   - idempotency: the whole journal, above its [idempotency.Store];
//   - programs: package flow, the runner of package program and the steps of handlers, with groups, nested
//     programs and steps that ask;
//   - handlers: all that [handlers.Handlers] does with turns, answers, expiries, cancels and resumes,
//     how runs ask, wait in memory, park and continue, the budget of requeued messages, deferred
//     messages, ages by the server's clock, and the merging of context variables above their bucket;
//   - the sweep: [sweep.Sweep] with its pages, above the bucket and the JetStream requests that it
//     makes, one read at a time;
//   - inbox: pulls, pings and how old what arrives is, what waits for a slot, heartbeats and
//     the end of leases, changes of the ack wait, settling, and the drain, as [inbox.Steps];
//   - engine, events, bindings and subjects as they are.
//
// What is simulated instead, because it is the server, the network or only wiring:
//
//   - the journal bucket (store), the inbound stream and its consumer (queue, link), the bucket of
//     context variables, dead letters, live copies;
//   - schedules: the server publishes an expiry, or a deferred message, when it is due. Workers take
//     these from the timers' stream ([timers.Timers]) and publish them into the inbound stream,
//     which here is one step;
//   - when a sweep is due: one begins at a time, unless its worker stands still, and at the end as many
//     as there is something to find for. Resumes are also sent at random times;
//   - the loop of goroutines that are the slots of a worker, and what package oneturn does with the
//     outcome of a handler: in a schedule one thing happens at a time;
//   - tools, which follow a script, and blobs, of which there are none.
//
// Not in it at all are planners and responders, approvals, the time limits of programs, the wire, the request API, limits, secrets, tools in other processes, and time
// in the engine, which only bounds tools.
//
// One schedule is two to four workers of one pool or two, one to three turns and a handful of
// faults: a worker is killed, paused for longer than its leases, drained, or restarted with other manifests; a
// write has an unknown outcome and is stored immediately, later or never; a read is stale; a rival
// write is undecided; an acknowledgement is lost or late; heartbeats are lost, so that a
// message is delivered again next to its owner; a delivery lies in the buffers of a connection until the queue has
// given its message to another worker; a worker is cut off from the queue and runs on; the ack
// wait is changed under running workers; hardly anything may be deferred; the server forgets delivery numbers; a turn is
// published again under another sequence, with other data, or too late; a cancel races it; its
// message vanishes, and a resume, which any client may send, finds it. Each operation on the
// store, the queue, the dead letters and in a tool is a point where the worker may be stopped,
// killed or overtaken.
//
// In half of the turns the tool asks people: one to three questions, some of them open at the same
// time, with durable steps between them, and now and then another question when it runs again. It
// waits in memory or is parked. People answer before they are asked, twice, in different ways, in
// a way that does not fit, or never; the time of a question ends, a cancel races both. Timers that
// park a turn and waits for an answer end when the scheduler lets them (run.Timing).
//
// One turn in four is a program: a plan, or an orchestration whose groups collect or end with the first success, whose
// failures are tolerated or halt it, and whose calls have tools of each effect, refer to the values of earlier steps, ask
// people, or are plans again. Its calls are separate lines of execution, so that each write of one may come before or after
// any write of the others.
//
// In one schedule of four, agents and users send messages: texts, tokens that triggers match, JSON for a tool, for none, or broken; some
// again, with other content under their id, with a lower sequence of their run, or as an event of the same turn. Workers differ in
// what they read in a text and in the rules for the next speaker, some of which ask a decider. They differ as well in how often a model is
// asked to correct an output that cannot be used. It replies with an object that fits or never does, with none, with half of one or with
// what cannot be read, or it fails; the turns of corrections ask people, are cancelled, or have a key that the producer has used.
//
// When the schedule has used up its faults, everything heals and the queue has to drain; the time
// of open questions ends, and sweeps ask for a resume of what then has no response. Then the checker compares the journal with the
// ledger, which the tools keep outside of all that:
//
//   - each turn has exactly one response, and its tool_call stands before it;
//   - a tool whose claim has effect unsafe, or replay without a question, was entered at most once, and
//     no other tool than the one that the claim names was entered for the turn;
//   - a turn that was claimed with a code was never entered and ends with that code;
//   - data that lost the turn key to other data was never run, and became a dead letter;
//   - a response that is ok comes from a run that returned that result;
//   - interrupted only if the tool must not be entered again and, before the response, a fault hit the
//     delivery that held the turn (a delivery that was lost requeues no message, so that is none);
//     cancelled only if a cancel was sent, and not entered by a takeover that came after the cancel;
//   - no new turn is claimed while the store is nearly full; too old, or without a binding, is an
//     event only by the server's clock, however wrong the worker's clock is;
//   - epochs count up by one, fencing tokens grow with them, the idempotency key stays;
//   - no message was settled before its turn had a response or another message held it, except
//     where a sweep finds the turn: its message vanished, or a resume was settled too early;
//   - no turn is parked that has been answered, expired or cancelled and that no worker takes (checked
//     before any sweep could resume it);
//   - each question is one record with one content; its one answer came after it and fits it, and
//     a sender that was notified of acceptance sent the answer that counts, no answer was settled before its sender
//     was notified, and the notification was true at that time: an answer that came before its question is
//     not unknown before it has waited;
//   - only data that lost its turn key becomes a dead letter, never an answer, expiry, cancel or resume;
//   - the code after an answer runs in two runs of a replay tool only as code before a later
//     question or after the first run had parked, and the code after all questions in one run;
//     an unsafe tool is never parked; a durable step is not done again by a run that began later;
//   - a delivery that is older than the ack wait when a handler begins it, counted from when it was sent or kept in
//     progress, stores nothing;
//   - a worker that drains requeues immediately what no slot has begun, and one that is well, and has had
//     the time to read the ack wait, loses no lease;
//   - a worker never requeues more messages than it has places for, which here is one, but for leases of claimed
//     turns and of messages whose text is stored, which must not be deferred; what it defers comes again, and takes up a turn that nothing else holds;
//   - nothing but expiries and answers that come again is deferred without room, nor anything acknowledged for that which a worker has read
//     that a later delivery holds; without room a message is decided immediately, or a dead letter while the store is nearly full;
//   - each open turn whose claim the sweeps have read is on one of their pages, whatever two of them do
//     at the same time, and none of them publishes a resume while one of an earlier sweep is in the stream;
//   - a stale read excuses only what the turns that were read that way do;
//   - the context variables of the chat are those that the runs changed whose responses name them,
//     and no others, also as a tool reads them that begins after such a response;
//   - a worker that lives drops no result of a tool, nor the run of an unsafe one, for a lost lease;
//   - a key that is published again after the retention, while only the claim and some other records of
//     the earlier turn have expired, is a new turn, of which all of this holds;
//   - no call of a program is stored before the program, nor before the steps that precede it are over by their records; it
//     has the arguments that follow from the stored responses, and its tool is entered with these, by whatever owner;
//   - the first success of a race counts that has the lowest sequence, for every owner;
//   - the tool of an unsafe call is entered at most once, no tool by an owner that began after the response of its call, and
//     each with the fencing token of the owner's epoch;
//   - after a park only a step is entered again one of whose questions is decided, and no unsafe step is open meanwhile;
//   - each call has one response, before the turn has one, unless another worker stored the call while the turn was ended;
//     the code and the payload of the turn are what these responses contain;
//   - of messages of agents and users, all that the test kit checks ([oneturntest.CheckMessages]); each revision of the document of
//     the chat follows from the one before: a message moves each variable once, by the value that it replaces, and the speaker after
//     it is the one that the rules give by the variables in that revision, which has what the tool of its turn has changed;
//   - no message is settled before the last record that is due for it, unless another one that completes it is in the stream;
//   - a model is asked for a correction after its call is stored, once by each delivery, by none that has read the reply, and about the
//     output and the failure that are stored; its stored reply is one that it has given, and the tool gets the object in that;
//   - nothing is left in the queue.
//
// A violation comes with its seed, and the seed with the whole schedule:
//
//	go test ./internal/test/sim -run TestSchedules -sim.seed=4711 -v
//
// `make sim` runs 20,000 schedules. `make mutants` plants one fault after the other in the
// real code (package internal/test/mutants, build tag mutants), and the schedules have to find each.
//
// # Reading order
//
//	sim.go, schedule.go      a schedule: what can happen next, drawn from its seed
//	world.go, fault.go       the simulated world and what goes wrong in it
//	worker.go, thread.go     a worker, and one delivery that it handles
//	fiber.go, timing.go      lines of execution, one of which runs at a time; their timers
//	store.go, fake_stores.go the journal's bucket; blobs, context variables and dead letters
//	queue.go, arrival.go     the inbound stream, and how deliveries reach a worker
//	nats_link.go, lease.go   pulls, heartbeats and the end of leases
//	deferral.go, sweep.go    deferred messages; sweeps and resumes
//	tool.go, question.go     what tools do, and what people answer
//	program.go, step.go      what programs are, and what the tools of their steps do
//	chat_message.go          messages of agents and users, and in chat_correction.go the model that corrects their outputs
//	manifest.go              the workflow as each worker knows it, and in chat_manifest.go what messages need of it
//	generation.go            keys that are published again after the retention
//	check*.go                the invariants above: of claims, questions, context variables, reports, programs, messages, corrections, documents
package sim
