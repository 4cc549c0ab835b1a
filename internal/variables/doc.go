// Package variables stores the context variables of chats: one document for each chat, merged by compare-and-set.
//
// A tool's changes are a [Delta] (delta.go). [Variables] stages them in the document before the response of the turn is
// stored, and merges them afterwards: the response decides whether they count (variables.go, document.go). [Digest]
// identifies the values of a producer's snapshot, so that a later read detects whether the producer has changed a
// variable since a tool did (snapshot.go).
package variables
