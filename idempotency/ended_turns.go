package idempotency

import (
	"crypto/sha256"
	"time"
)

// A journal remembers in memory which turns have ended (docs/journal.md#rule-12): a late duplicate of a turn's message is
// then acknowledged without a request to the server.

// How many ended turns a journal remembers, and for how long: far less than any retention, after which a turn with the same
// key is a new one.
const (
	maxFinished = 16_384
	finishedFor = 10 * time.Minute
)

// TurnRef identifies a turn and its data.
type TurnRef [sha256.Size]byte

// RefOf returns the reference of the turn with a key, in the form of subjects.Key.String, and the
// fingerprint of its data.
func RefOf(key string, fingerprint [sha256.Size]byte) TurnRef {
	const usual = 320 // a key has four tokens
	return sha256.Sum256(append(append(make([]byte, 0, usual), key...), fingerprint[:]...))
}

// Finished reports whether this process recently saw that a turn has ended, so that a late duplicate of its message costs the
// server nothing.
func (j *Journal) Finished(turn TurnRef, now time.Time) bool { return j.finished.Has(turn, now) }

// NoteFinished remembers for a while that a turn has ended, and reports whether that was known.
func (j *Journal) NoteFinished(turn TurnRef, now time.Time) (known bool) {
	return j.finished.Add(turn, now)
}
