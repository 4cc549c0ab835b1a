// Package embedded runs a NATS server with JetStream inside the process, so that a worker
// needs nothing but itself to start. It is the only package besides tests that links the
// server; a library user who brings a connection does not pay for it.
//
// The server listens on TCP too (loopback by default), so that publishers and operators on
// the same machine can reach it. Its store directory is locked: two servers on one store
// would destroy each other's streams.
//
// The package starts and stops a server and makes no streams; see package provision.
//
// The files, in reading order: options.go, server.go (start, restart, stop), store_lock.go with lock_unix.go and
// lock_windows.go, store_check.go (streams that the server could not open, and stores of another account), store_limit.go (how
// much may be stored) with disk_unix.go, disk_windows.go and disk_other.go, disk_full.go (waits for room and reopens the
// store), accounts.go (users and accounts), count_subscribers.go (how many workers there are), log.go (the server's log).
package embedded
