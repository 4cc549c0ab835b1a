package handlers

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
)

// Reasons of dead letters: header Oneturn-Reason and metric label.
const (
	reasonUndecodable     = "undecodable"
	reasonMissingField    = "missing_field"
	reasonUnknownKind     = "unknown_kind"
	reasonSubjectMismatch = "subject_mismatch"
	reasonConflict        = "turn_conflict"
	reasonUndeliverable   = "undeliverable"
	reasonTooLarge        = "too_large"
	reasonStateCorrupt    = "state_corrupt"
)

// Headers of a dead letter, beside those of the message itself.
const (
	HeaderReason   = "Oneturn-Reason"
	HeaderError    = "Oneturn-Error"
	HeaderSubject  = "Oneturn-Subject"
	HeaderSequence = "Oneturn-Sequence"
	HeaderBlob     = "Oneturn-Blob"     // name of the blob that holds the bytes, if they are over 16 KiB
	HeaderNotKept  = "Oneturn-Not-Kept" // why the bytes are neither in the letter nor in a blob
	HeaderSize     = "Oneturn-Size"     // how many bytes the message had, if they are not in the letter
	// HeaderSHA256 is the hash of bytes that are not in the letter. A private message has none: short
	// secrets could be tried out against it.
	HeaderSHA256 = "Oneturn-SHA256"
	// HeaderLeftOut is how many of the message's own headers did not fit.
	HeaderLeftOut = "Oneturn-Headers-Left-Out"
)

// maxErrorHeader bounds the text of an error in a header, in bytes.
const maxErrorHeader = 1024

func decodeReason(err error) string {
	var missing *events.MissingFieldError
	if errors.As(err, &missing) {
		return reasonMissingField
	}
	return reasonUndecodable
}

// dead moves a message to the dead letters, with its bytes and the reason. The message is
// acknowledged only when the dead letter is stored.
func (h *Handlers) dead(m *Message, reason string, cause error) Disposition {
	if err := h.Dead.Put(m.Held, m, reason, cause); err != nil {
		h.often(m, slog.LevelError, "a dead letter could not be stored; the message comes back", reason, "reason", reason, "seq", m.Lease.Seq, "err", err)
		return leave()
	}
	h.Metrics.Dead.WithLabelValues(reason).Inc()
	h.often(m, slog.LevelWarn, "dead letter", reason, "reason", reason, "seq", m.Lease.Seq, "bytes", len(m.Data), "err", events.LogText(cause))
	return ack()
}

func oneLine(text string) string {
	if len(text) > maxErrorHeader {
		text = text[:maxErrorHeader] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}

func tooLarge(what string, err error) error {
	msg := "the " + what + " of the tool are too large to store"
	var e *events.Error
	if errors.As(err, &e) && e.Msg != "" && errors.Is(err, idempotency.ErrRefused) { // it names the mend
		msg = "the " + what + " of the tool cannot be stored: " + e.Msg
	}
	return &events.Error{Code: events.CodeTooLarge, Msg: msg, Err: err}
}
