package sweep

import (
	"crypto/sha256"

	"github.com/oneturn/oneturn/subjects"
)

// maxUpdates bounds the turns of which a sweep remembers that they have a new record: some 30 MB.
const maxUpdates = 500_000

// updates are the turns, claimed before, of which a sweep has read new records: of the others nothing has to
// be read again. It is not safe for concurrent writing.
type updates struct {
	from  uint64 // of the journal: every record from here on that has been read counts
	turns map[[16]byte]latest
	full  bool // there were more
}

// latest is the sequence of the newest record of a turn, doubled, and 1 more once its response is among them.
type latest uint64

func newUpdates() *updates { return &updates{turns: map[[16]byte]latest{}} }

func updateKey(call string) [16]byte {
	sum := sha256.Sum256([]byte(call))
	return [16]byte(sum[:16])
}

// add notes a record of a turn that was claimed before. Ended says that it is the response.
func (n *updates) add(k subjects.Key, seq uint64, ended bool) {
	of := updateKey(k.String())
	had, known := n.turns[of]
	if !known && len(n.turns) >= maxUpdates {
		n.full = true
		return
	}
	next := had&1 | latest(seq)<<1
	if ended {
		next |= 1
	}
	n.turns[of] = max(had, next)
}

// forget drops what was noted of a turn before the claim that was read just now: it is left of a former
// life of its key.
func (n *updates) forget(k subjects.Key) { delete(n.turns, updateKey(k.String())) }

// sinceThen is what is new of a turn.
type sinceThen struct {
	ended   bool   // its response was among the records
	nothing bool   // there is no new record of it
	all     bool   // every new record of it was read
	newest  uint64 // sequence of the newest of them
}

// of returns what is new of a turn of which everything before sequence known has been seen.
func (n *updates) of(call string, known uint64) sinceThen {
	found, some := n.turns[updateKey(call)]
	all := known >= n.from && !n.full
	return sinceThen{ended: found&1 == 1, nothing: all && !some, all: all, newest: uint64(found >> 1)}
}
