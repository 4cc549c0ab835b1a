// Package deferral stores messages that have to wait with the server, which publishes them again later.
//
// A message that waits for a redelivery holds one of the places that the workers of a pool share. One that is deferred
// holds none: a schedule in the stream of the timers has its data, sealed if it may be secret, and headers that record
// its age and its deliveries (headers.go). [State.Pack] and [Publisher] store it (message.go), [Read] restores it when
// it is delivered again (state.go). [Quota] bounds what is deferred, for each tenant and in all (quota.go), and counts
// it by the names of the schedules (count.go). When to defer is decided in handlers/requeue.go.
package deferral
