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
	maxEnded = 16_384
	endedFor = 10 * time.Minute
)

// TurnRef identifies a turn and its data.
type TurnRef [sha256.Size]byte

// RefOf returns the reference of the turn with a key, in the form of subjects.Key.String, and the
// fingerprint of its data.
func RefOf(key string, fingerprint [sha256.Size]byte) TurnRef {
	const usual = 320 // a key has four tokens
	return sha256.Sum256(append(append(make([]byte, 0, usual), key...), fingerprint[:]...))
}

// RecentlyEnded reports whether this process recently saw that a turn has ended, by memory alone: a late duplicate of its
// message costs the server nothing. That it reports false means nothing.
func (j *Journal) RecentlyEnded(turn TurnRef, now time.Time) bool { return j.ended.Has(turn, now) }

// NoteEnded remembers for a while that a turn has ended, and reports whether that was known.
func (j *Journal) NoteEnded(turn TurnRef, now time.Time) (known bool) {
	return j.ended.Add(turn, now)
}
