// Package variables stores the context variables of chats: one document for each chat, merged by compare-and-set.
//
// A tool's changes are a [Delta] (delta.go). [Variables] stages them in the document before the response of the turn is
// stored, and merges them afterwards: the response decides whether they count (variables.go, document.go). What triggers
// of the workflow change, and the next speaker, are decided and stored in one step ([Variables.Apply], messages.go). Below the
// stored values are the snapshot of the producer and the start values of the declared variables ([Layers]). [Digest] identifies
// the values of a producer's snapshot, so that a later read detects whether the producer has changed a variable since a tool
// did (snapshot.go). Variables whose value a tool reads are stored once, as if they had been there from the start
// (read_by_tools.go). [State] is the document as people read it (state.go). It has the
// decisions of the [Contents] (contents.go), which tests compare with the journal.
package variables
