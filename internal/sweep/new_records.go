package sweep

import (
	"crypto/sha256"

	"github.com/oneturn/oneturn/subjects"
)

// maxNewRecords bounds the turns of which a sweep remembers that they have a new record: some 30 MB.
const maxNewRecords = 500_000

// newRecords are the turns, claimed before, of which a sweep has read new records: of the others nothing has to
// be read again. It is not safe for concurrent writing.
type newRecords struct {
	from  uint64 // of the journal: every record from here on that has been read counts
	turns map[[16]byte]latest
	full  bool // there were more
}

// latest is the sequence of the newest record of a turn, doubled, and 1 more once its response is among them.
type latest uint64

func makeNewRecords() *newRecords { return &newRecords{turns: map[[16]byte]latest{}} }

func recordKey(call string) [16]byte {
	sum := sha256.Sum256([]byte(call))
	return [16]byte(sum[:16])
}

// add notes a record of a turn that was claimed before. Ended is set for the response.
func (n *newRecords) add(k subjects.Key, seq uint64, ended bool) {
	of := recordKey(k.String())
	had, known := n.turns[of]
	if !known && len(n.turns) >= maxNewRecords {
		n.full = true
		return
	}
	next := had&1 | latest(seq)<<1
	if ended {
		next |= 1
	}
	n.turns[of] = max(had, next)
}

// forget drops what was noted of a turn before the claim that was read just now: it belongs to an earlier turn of
// the key.
func (n *newRecords) forget(k subjects.Key) { delete(n.turns, recordKey(k.String())) }

// sinceThen is what is new of a turn.
type sinceThen struct {
	ended   bool   // its response was among the records
	nothing bool   // there is no new record of it
	all     bool   // every new record of it was read
	newest  uint64 // sequence of the newest of them
}

// of returns what is new of a turn of which everything before sequence known has been seen.
func (n *newRecords) of(call string, known uint64) sinceThen {
	found, some := n.turns[recordKey(call)]
	all := known >= n.from && !n.full
	return sinceThen{ended: found&1 == 1, nothing: all && !some, all: all, newest: uint64(found >> 1)}
}
