// Package variables has the context variables of chats. Digest (digest.go) identifies the values of a snapshot, so that
// a later read detects whether the producer has changed them.
package variables
