// Package run is the life of one tool call in this process: what its tool may do besides computing, and how the call
// waits for people without using a worker.
//
// # The life of a call
//
// When the journal decides that a handler runs a turn, the handler registers a [Run] with [Registry.Start], passes
// [Run.Invocation] to the engine, and learns from [Run.Close] whether the outcome of the tool counts.
//
// Each attempt of the tool gets a host ([tools.Host]) of the run. What it asks, shows and stores is written to the journal
// under the hold of the run, so a later run of the turn finds it and asks the same questions.
//
// A tool that asks waits in memory. From the first open question on, the run releases its slot. The live copy of the
// answer's ack wakes it ([Registry.AckSeen]), and it also polls, because live copies get lost. It reads the answer
// from the journal, stores that its tool takes it, and the tool continues.
//
// After [Config].ParkAfter without activity the run parks: it stores the open questions and its state, ends with
// [tools.ErrParked], and its message is acknowledged. A parked turn uses no resources. The message of an answer starts
// a new run, whose turn gets the state back with [Restore].
//
// A tool with effect unsafe may not be entered twice, so its run never parks. It waits in memory within a budget of its
// tenant, and continues when it loses its lease: the journal decides whether it still holds the turn.
//
// A run ends when its tool returns, when it parks, when the turn was cancelled or has ended elsewhere, or when it
// cannot know what is stored. From then on its hosts return errors. [Registry.Drain] has all runs that wait park
// immediately, because the worker is about to stop.
//
// # Files
//
//   - turn.go: the turn that a run works on, and its message. registry.go: the runs of the process, their
//     configuration and budgets.
//   - shared.go: what the runs of a turn share. step.go: the runs of the steps of a program.
//   - run.go: one run and its end. write_context.go: which context its writes use. invocation.go: what the engine gets, and the
//     wait for a limit. binding_to_engine.go: the tool, call and arguments of a binding, also for turnctl call and prompts.
//   - host.go: what a tool can do. interaction.go: how questions and surfaces are displayed. progress.go: progress events.
//     secrets.go: secret answers do not leave through the host.
//   - question.go: the record of a question. wait.go: asking, waiting and taking the answer. park.go: when and how a run
//     parks. parked_state.go: what the next run needs. clock.go: the time of all waits.
package run
