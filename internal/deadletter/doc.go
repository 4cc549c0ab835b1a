// Package deadletter stores messages that cannot be handled.
//
// All tenants share the stream of dead letters, and its oldest messages make room for new ones. So that a tenant cannot
// evict the dead letters of others, each has a share: a dead letter is small, the stream keeps a number of them for each
// tenant and kind, and larger bytes are in blobs of a fixed number of names (stream.go). reasons.go lists the reasons and
// the headers, which are part of the wire contract.
package deadletter
