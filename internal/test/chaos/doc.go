// Package chaos breaks what oneturn runs on, under load, and checks what is stored against the promise: server processes
// are killed, paused and restarted, the network is cut, stalled and delayed, the disk fills up, workers are replaced. Its
// tests need the build tag `chaos`, the soak the tag `soak`; `make chaos` and `make soak` run them.
//
// A scenario (run_test.go) starts servers and workers (rig_test.go, worker_process_test.go), each a separate process, and a
// load that continues through the faults. A publish of unknown outcome is repeated, so every turn that was begun is
// accepted in the end. After the last fault everything heals, the inbound stream runs empty and
// [github.com/oneturn/oneturn/oneturntest.Check] checks the journal, the copies that subscribers saw and the ledger of
// the tools (end_of_run_test.go).
//
// What is broken:
//
//	servers   the leader of the journal, of the inbound stream, of the consumer is killed or paused; each in turn; all
//	          at the same time; the disk fills up; all leaders step down; a server is removed from the cluster and
//	          another one takes its place
//	links     a leader is cut off from the others with the worker that reaches no other server, silently,
//	          loudly, or one way only: that worker must enter no tool, the others continue
//	network   delay, 64 kB a second, cuts and resets each 500 ms and in the middle of a message, half-open
//	          connections for longer than a lease
//	workers   killed at random, replaced gently, stopped past their lease and inside a tool; workers of the commit
//	          before (-chaos.base) run next to workers of this one, in both directions
//	objects   consumer or journal deleted, the journal created again under running workers, the inbound stream
//	          purged
//	nothing   duplicates, resumes and cancels storm in: nothing may be interrupted or change hands
//
// Every worker must have ended without leaving a goroutine, and hold few descriptors at rest. A run
// ends with a page: for each scenario the longest time without a publish, without a response, and from a fault until
// turns continued. `make mutants-chaos` plants the faults of package mutants in
// real workers: the scenario or the crash test that the catalogue names has to find each.
package chaos
