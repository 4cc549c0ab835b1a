// Package retry decides what happens to the calls of a program that is retried by hand: which keep their results, which run. It
// reads records that others have read from the journal; it stores and runs nothing. What a retry does with the current manifests is in
// package program.
//
//   - past.go: [Past], an ended turn as its public records show it, and whether it can be retried
//   - records.go: these records of a turn that was read from the journal
//   - outline.go: [Outline], which calls keep their results and which run, and which of those need the consent of the operator
//   - copies.go: [Copies], the results that a retry keeps: they are stored with its program, before its first step
//   - find.go: the turn that is to be retried, and the key of the retry
//
// A call that keeps its result never runs again, whatever happens to the retry: the record with the program of the retry has the
// results. A retry that is retried itself has them there, so a retry reads one turn.
package retry
