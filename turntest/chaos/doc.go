// Package chaos breaks what oneturn runs on, under load, and holds what is left against the
// promise: server processes are killed, paused and restarted, the network is cut, stalled and
// delayed, the disk fills up, workers are replaced. Its tests need the build tag `chaos`, the
// soak the tag `soak`; `make chaos` and `make soak` run them.
//
// A scenario starts servers and workers, each a process of its own, and a load that goes on
// through the faults. A publish of unknown outcome is repeated, so every turn that was begun is
// accepted in the end. After the last fault everything heals, the inbound stream runs empty and
// [github.com/oneturn/oneturn/turntest.Check] judges the journal, the copies that subscribers
// saw and the ledger of the tools.
package chaos
