package handlers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
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
	HeaderBlob     = "Oneturn-Blob" // name of the blob that holds the bytes, when they do not fit
	// HeaderSize is how many bytes a message had whose bytes are not kept, see [Message.Private]. There
	// is no hash of them: whoever reads dead letters could try out short secrets against it.
	HeaderSize = "Oneturn-Size"
	// HeaderLeftOut is how many of the message's own headers did not fit.
	HeaderLeftOut = "Oneturn-Headers-Left-Out"
)

// maxSendersHeaders bounds the message's own headers in its dead letter, in bytes: the server
// takes blocks of 64 KiB, and the letter has more to say than the message had.
const maxSendersHeaders = 32 << 10

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
func (h *Handlers) dead(m *Message, app, reason string, cause error) Disposition {
	if err := h.Dead.Put(m.Held, m, app, reason, cause); err != nil {
		h.Logger.Error("a dead letter could not be stored; the message comes back", "reason", reason, "seq", m.Lease.Seq, "err", err)
		return leave()
	}
	h.Metrics.Dead.WithLabelValues(reason).Inc()
	h.Logger.Warn("dead letter", "reason", reason, "seq", m.Lease.Seq, "bytes", len(m.Data), "err", logError(cause))
	return ack()
}

// logError bounds the text of an error in the log. Of broken JSON it says where and why, but
// not below which keys: they can be names of people.
func logError(err error) string {
	text := err.Error()
	var syntax *events.SyntaxError
	if errors.As(err, &syntax) {
		text = (&events.SyntaxError{Offset: syntax.Offset, Reason: syntax.Reason}).Error()
	}
	if len(text) > maxErrorHeader {
		return text[:maxErrorHeader] + "…"
	}
	return text
}

// Letters takes messages that cannot be handled. [DeadLetters] is the real one.
type Letters interface {
	// Put stores a message with the reason and the error. The message is acknowledged only
	// when it returns nil.
	Put(ctx context.Context, m *Message, app, reason string, cause error) error
}

// DeadLetters stores what cannot be handled in the stream of dead letters.
type DeadLetters struct {
	js    jetstream.JetStream
	space subjects.Space
	blobs *Blobs
}

// NewDeadLetters returns the dead letters of space.
func NewDeadLetters(js jetstream.JetStream, space subjects.Space, blobs *Blobs) *DeadLetters {
	return &DeadLetters{js: js, space: space, blobs: blobs}
}

// Put stores a message as a dead letter, a private one without its bytes. Storing the same
// message again within the duplicate window stores nothing new.
func (d *DeadLetters) Put(ctx context.Context, m *Message, app, reason string, cause error) error {
	kind := "unknown"
	if in, ok := d.space.ParseIn(m.Subject); ok {
		kind = in.Kind
	}
	header := senders(m.Header)
	header.Set(HeaderReason, reason)
	header.Set(HeaderError, oneLine(cause.Error()))
	header.Set(HeaderSubject, m.Subject)
	header.Set(HeaderSequence, strconv.FormatUint(m.Lease.Seq, 10))
	header.Set(nats.MsgIdHdr, origin(m)+"/"+reason)
	letter := &nats.Msg{Subject: d.space.Dead(app, kind), Header: header, Data: m.Data}
	if m.Private {
		header.Set(HeaderError, oneLine(logError(cause)))
		header.Set(HeaderSize, strconv.Itoa(len(m.Data)))
		letter.Data = nil
	}
	if letter.Size() > d.blobs.maxMessage() {
		blob, err := d.blobs.put(ctx, "dead."+strconv.FormatUint(m.Lease.Seq, 10), m.Data)
		if err != nil {
			return err
		}
		header.Set(HeaderBlob, blob.Blob)
		letter.Data = nil
	}
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	if _, err := d.js.PublishMsg(ctx, letter); err != nil {
		return fmt.Errorf("dead letter on %s: %w", letter.Subject, err)
	}
	return nil
}

// senders returns the headers of a message that go into its dead letter: none that the server
// or a reader would obey, none that are the worker's to write, and as many as fit.
func senders(all nats.Header) nats.Header {
	kept := nats.Header{}
	size, left := 0, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lower := strings.ToLower(name)
		if lower == "status" || strings.HasPrefix(lower, "nats-") || strings.HasPrefix(lower, "oneturn-") {
			continue
		}
		more := 0
		for _, value := range all[name] {
			more += len(name) + len(value) + len(": \r\n")
		}
		if size+more > maxSendersHeaders {
			left++
			continue
		}
		size += more
		kept[name] = all[name]
	}
	if left > 0 {
		kept.Set(HeaderLeftOut, strconv.Itoa(left))
	}
	return kept
}

// putTimeout bounds one write outside the journal.
const putTimeout = 5 * time.Second

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
