// Package embedded runs a NATS server with JetStream inside the process, so that a worker
// needs nothing but itself to start. It is the only package besides tests that links the
// server; a library user who brings a connection does not pay for it.
//
// The server listens on TCP too (loopback by default), so that publishers and operators on
// the same machine can reach it. Its store directory is locked: two servers on one store
// would destroy each other's streams.
//
// The package starts and stops a server and makes no streams; see package provision.
package embedded
