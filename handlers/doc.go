// Package handlers turns inbound messages into journal records: one file per kind of message,
// the nine steps of a turn readable top to bottom in turn.go. A handler answers each message
// with a [inbound.Disposition]; it never acknowledges anything itself, and it never drops a message
// silently: what cannot be read becomes a dead letter, what can be read ends in a response.
package handlers
