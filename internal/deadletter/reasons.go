package deadletter

import (
	"errors"

	"github.com/oneturn/oneturn/events"
)

// Reasons of dead letters: header Oneturn-Reason and metric label.
const (
	ReasonUndecodable     = "undecodable"
	reasonMissingField    = "missing_field"
	ReasonUnknownKind     = "unknown_kind"
	ReasonSubjectMismatch = "subject_mismatch"
	ReasonConflict        = "turn_conflict"
	ReasonMessageConflict = "message_conflict"
	ReasonUndeliverable   = "undeliverable"
	ReasonTooLarge        = "too_large"
	ReasonStateCorrupt    = "state_corrupt"
)

// Headers of a dead letter, in addition to the headers of the message itself.
const (
	HeaderReason   = "Oneturn-Reason"
	HeaderError    = "Oneturn-Error"
	HeaderSubject  = "Oneturn-Subject"
	HeaderSequence = "Oneturn-Sequence"
	HeaderBlob     = "Oneturn-Blob"     // name of the blob that holds the bytes, if they are over 16 KiB
	HeaderNotKept  = "Oneturn-Not-Kept" // why the bytes are neither in the dead letter nor in a blob
	HeaderSize     = "Oneturn-Size"     // how many bytes the message had, if they are not in the dead letter
	// HeaderSHA256 is the hash of bytes that are not in the dead letter. A private message has none: short
	// secrets could be tried out against it.
	HeaderSHA256 = "Oneturn-SHA256"
	// HeaderLeftOut is how many of the message's own headers did not fit.
	HeaderLeftOut = "Oneturn-Headers-Left-Out"
)

// DecodeReason is the reason of a message that cannot be decoded because of err.
func DecodeReason(err error) string {
	var missing *events.MissingFieldError
	if errors.As(err, &missing) {
		return reasonMissingField
	}
	return ReasonUndecodable
}
