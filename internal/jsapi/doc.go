// Package jsapi makes the requests of the JetStream API that nats.go does not offer, or not in the form that a
// worker needs. It knows nothing of turns.
//
// nats.go reads messages from any replica where a stream allows direct reads. [Read] asks the leader, which alone
// decides that a message is not there (read.go). [LastMessages] reads the last messages of many subjects from any replica or mirror
// (last_messages.go), and [Find] finds one message there (direct.go). [Info] lists the subjects of a stream page by page, [Delete]
// overwrites a message, [Purge] removes the messages of a subject (stream.go). [Each] reads the messages of a small stream without a
// consumer (each.go). [Headers] reads the headers of many messages without their contents, at a rate that a [RateLimiter] keeps
// (headers.go, rate_limiter.go). [Scheduled] makes a message that the
// server delivers later (schedule.go), [ServerTime] is the clock of the server (server_time.go). [Refused], [OutOfSpace] and the error
// codes that nats.go does not name classify the errors of writes (errors.go).
package jsapi
