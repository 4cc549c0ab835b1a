package deadletter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// A dead letter is built from the message (message), its bytes are moved to a blob or omitted if it must not hold them
// (moveBytes), and it is published with an id that makes repeats duplicates (Put).

const (
	// maxDeadLetter bounds the bytes of a message that its dead letter holds itself.
	maxDeadLetter = 16 << 10
	// maxSendersHeaders bounds the message's own headers in its dead letter, in bytes.
	maxSendersHeaders = 8 << 10
	// maxErrorHeader bounds the text of an error in a header, in bytes.
	maxErrorHeader = 1 << 10
)

// Why a dead letter or its bytes were discarded: label of a metric.
const (
	discardedShare = "tenant_share" // newer dead letters of the same tenant and kind
	discardedFull  = "stream_full"  // newer dead letters of any tenant
	discardedBlobs = "blobs_full"   // its own bytes were refused
)

// notKeptPrivate is why the bytes of a private message are not kept.
const notKeptPrivate = "it was to be an answer, which may be secret"

// Store takes messages that cannot be handled. [Stream] is the real one.
type Store interface {
	// Put stores a message with the reason and the error. The message is acknowledged only
	// when it returns nil.
	Put(ctx context.Context, m *inbound.Message, reason string, cause error) error
}

// Stream stores what cannot be handled in the stream of dead letters.
type Stream struct {
	js      jetstream.JetStream
	space   subjects.Space
	blobs   *store.Blobs
	metrics *metrics.Metrics

	writing [subjects.DeadBlobs]sync.Mutex // one writer a name of a blob
}

// New returns the dead letters of space.
func New(js jetstream.JetStream, space subjects.Space, blobs *store.Blobs, metrics *metrics.Metrics) *Stream {
	return &Stream{js: js, space: space, blobs: blobs, metrics: metrics}
}

// Put stores a message as a dead letter of the tenant that its subject names: what the body claims was
// not checked. The bytes of a private message are left out, more than 16 KiB are in a blob, and if
// the blobs refuse them the dead letter has their hash and the reason. Storing the same message again
// within the duplicate window stores nothing new.
func (d *Stream) Put(ctx context.Context, m *inbound.Message, reason string, cause error) error {
	letter := d.message(m, reason, cause)
	if err := d.moveBytes(ctx, m, letter); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	discarded := d.makesRoom(ctx, letter)
	stored, err := d.js.PublishMsg(ctx, letter)
	if err != nil {
		return fmt.Errorf("dead letter on %s: %w", letter.Subject, err)
	}
	if discarded != "" && !stored.Duplicate {
		d.metrics.DeadDiscarded.WithLabelValues(discarded).Inc()
	}
	return nil
}

func (d *Stream) message(m *inbound.Message, reason string, cause error) *nats.Msg {
	header := senders(m.Header)
	header.Set(HeaderReason, reason)
	header.Set(HeaderError, excerpt.Line(cause.Error(), maxErrorHeader))
	header.Set(HeaderSubject, m.Subject)
	header.Set(HeaderSequence, strconv.FormatUint(m.Lease.Seq, 10))
	header.Set(nats.MsgIdHdr, m.Origin()+"/"+reason)
	if m.Private {
		header.Set(HeaderError, excerpt.Line(events.LogText(cause), maxErrorHeader))
	}
	return &nats.Msg{Subject: d.space.DeadOf(m.Subject), Header: header, Data: m.Data}
}

// moveBytes takes the bytes out of a dead letter that must not or cannot hold them. It returns an error if
// another try may store them.
func (d *Stream) moveBytes(ctx context.Context, m *inbound.Message, letter *nats.Msg) error {
	fits := len(m.Data) <= maxDeadLetter && letter.Size() <= d.blobs.MaxMessage()
	if fits && !m.Private {
		return nil
	}
	letter.Data = nil
	letter.Header.Set(HeaderSize, strconv.Itoa(len(m.Data)))
	if m.Private {
		letter.Header.Set(HeaderNotKept, notKeptPrivate)
		return nil
	}
	letter.Header.Set(HeaderSHA256, store.Hash(m.Data))
	name, err := d.putBlob(ctx, letter.Subject, m)
	switch {
	case errors.Is(err, idempotency.ErrRefused):
		letter.Header.Set(HeaderNotKept, excerpt.Line(err.Error(), maxErrorHeader))
		d.metrics.DeadDiscarded.WithLabelValues(discardedBlobs).Inc()
	case err != nil:
		return err
	default:
		letter.Header.Set(HeaderBlob, name)
	}
	return nil
}

// putBlob stores the bytes of a message under one of the names that the dead letters on subject have. An
// older dead letter that has the name loses its bytes.
func (d *Stream) putBlob(ctx context.Context, subject string, m *inbound.Message) (string, error) {
	app, kind, _ := d.space.ParseDead(subject)
	name := subjects.DeadBlob(app, kind, m.Lease.Seq)
	one := &d.writing[m.Lease.Seq%subjects.DeadBlobs]
	one.Lock()
	defer one.Unlock()
	replaced, err := d.blobs.Replace(ctx, name, m.Data)
	if replaced {
		d.metrics.DeadDiscarded.WithLabelValues(discardedShare).Inc()
	}
	return name, err
}

// makesRoom returns why the server discards an older dead letter for this one, "" if it does not or if
// that is not known. Only the metric depends on it.
func (d *Stream) makesRoom(ctx context.Context, letter *nats.Msg) string {
	info, err := jsapi.Info(ctx, d.js.Conn(), d.space.DeadStream(), letter.Subject, 0)
	if err != nil {
		return ""
	}
	switch limits := info.Config; {
	case limits.MaxMsgsPerSubject > 0 && int64(info.State.Subjects[letter.Subject]) >= limits.MaxMsgsPerSubject:
		return discardedShare
	case limits.MaxBytes > 0 && int64(info.State.Bytes)+int64(letter.Size()) > limits.MaxBytes:
		return discardedFull
	}
	return ""
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
