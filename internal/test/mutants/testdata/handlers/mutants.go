package handlers

import (
	"crypto/sha256"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// The overlay of package mutants adds this file; released binaries do not have it.

// keyOfMessage is the key of a turn for which every message is a separate turn.
func keyOfMessage(key subjects.Key, m *message) subjects.Key {
	key.Call = "m" + strconv.FormatUint(m.Lease.Seq, 10)
	return key
}

// seenMsgID reports whether the Nats-Msg-Id of a message was seen before.
func (h *Handlers) seenMsgID(m *message) bool {
	return h.Journal.NoteEnded(idempotency.RefOf(m.Header.Get(nats.MsgIdHdr), [sha256.Size]byte{}), h.Now())
}

var errMutant = errors.New("it was delivered too often")
