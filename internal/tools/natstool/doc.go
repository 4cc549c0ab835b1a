// Package natstool calls endpoints of NATS services as tools, by the conventions of nats.go's micro
// package; services in any language can keep to them (docs/nats-services.md).
//
// # Calls
//
// The request's body is the arguments as JSON. Headers have the call's identity
// ([target.Identity]) and how long it may take. The reply subject is an inbox of the call: a message
// with the header Oneturn-Kind is an operation of the call's host (progress, ask, show, dismiss,
// step) or asks to be notified when the call ends before its answer (end); one without it is the
// answer. All calls of a [Tool] share one subscription.
//
// # Failures
//
// The headers Oneturn-Error-Code and Nats-Service-Error-Code make an answer a failure, by one table
// ([tools.Retryable] for 429, 503 and retryable). Without a subscriber, and without a connection,
// nothing has happened: those are retryable too. What comes after the request was sent, a deadline
// or the end of the connection, is an unknown outcome and never is.
//
// # Discovery
//
// Service and endpoint names lead to a subject and metadata by $SRV.INFO.<service>: asked before the
// first call and again in the background once it is older than [Options].Fresh. A service is called
// only at subjects below its name or that the manifest lists, and only at the one where it was found
// first ([Subjects]). The metadata has JSON Schemas (arguments are checked and coerced before they
// are sent, answers are checked), a version and an effect, which counts only if the manifest trusts
// it and all instances agree. Of instances that differ otherwise, the one with the newest version counts.
//
// # Files
//
// natstool.go sends the request; conversation.go waits for the answer and serves operations (host.go); answer.go reads the
// answer and its errors; reply_inbox.go is the subscription; describe.go and discover.go find the endpoint, version.go
// compares the versions of its instances, subjects.go decides which subjects may be called.
package natstool
