package handlers

import (
	"crypto/sha256"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/mutant"
	"github.com/oneturn/oneturn/subjects"
)

// What is in this file is not in a released binary: see package mutant.

// mutantKey is the key of a turn for which every message is a turn of its own.
func mutantKey(key subjects.Key, m *message) subjects.Key {
	if mutant.Planted(mutant.DedupeWindowOnly) {
		key.Call = "m" + strconv.FormatUint(m.Lease.Seq, 10)
	}
	return key
}

// mutantDuplicate reports whether the Nats-Msg-Id of a message was seen before.
func (h *Handlers) mutantDuplicate(m *message) bool {
	if !mutant.Planted(mutant.MsgIDDecides) {
		return false
	}
	return h.Journal.NoteFinished(idempotency.RefOf(m.Header.Get(nats.MsgIdHdr), [sha256.Size]byte{}), h.Now())
}

var errMutant = errors.New("it was delivered too often")

// mutantGivesUp reports whether a message was delivered often enough to be given up by a count.
func mutantGivesUp(m *message) bool {
	const often = 5
	return mutant.Planted(mutant.CountGivesUp) && m.Lease.Delivery > often
}
