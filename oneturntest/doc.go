// Package oneturntest is the test kit of oneturn, for users of the library and for its own tests. Most tests of tools need
// the first part only.
//
// # Testing a tool
//
// Without a server: a [Host] in memory stands for the worker of one turn, [CallTool] and [CallPython] call a tool with it,
// and its script answers what the tool asks (host.go).
//
// With a server: [NewServer] starts one in the process of the test (server.go), and a [Human] answers over NATS as a
// frontend does, by rules (human.go). [VerifyNoLeaks] ends a package's tests with a check of its goroutines
// (goroutine_leaks.go). docs/testing.md has whole tests.
//
// # Checking a run
//
// A test of the guarantee kills workers and then compares what is left with the promise: one response for each turn, and
// no unsafe tool entered twice. In the order of use:
//
//   - [RunRole] and [StartProcess] run workers in processes that the test can kill or pause, [StartBinary] runs a program,
//     for example a worker of an earlier release (process.go);
//   - [OpenLedger] is a file in which tools note each run (ledger.go), [Audit] keeps the live copies of events in a stream of
//     the server (audit.go);
//   - [AtRest] waits until every message is settled, and collects the [Facts]: ledger, copies, journal, dead letters. A run
//     that is checked in parts continues at a [Mark] ([CollectSince]);
//   - [Check] returns the violations in them (checker.go, with checker_epochs.go for the owners of a turn, checker_program.go
//     and checker_retry.go for programs, checker_questions.go for questions, checker_message.go with checker_message_facts.go,
//     checker_message_follow.go, checker_message_correct.go, checker_message_document.go and checker_message_letters.go for messages of
//     agents and users, checker_keys.go for the ids in records, and checker_reused_keys.go for turn keys that were used again).
package oneturntest
