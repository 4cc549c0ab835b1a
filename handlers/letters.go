package handlers

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
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/subjects"
)

// The stream of dead letters is shared by all tenants and its oldest letters make room for new ones.
// So that a tenant cannot evict the letters of others, each has a share: a letter is small, the
// stream keeps a number of letters of each tenant and kind, and larger bytes are in blobs of a fixed
// number of names.

const (
	// maxLetter bounds the bytes of a message that its dead letter holds itself.
	maxLetter = 16 << 10
	// maxSendersHeaders bounds the message's own headers in its dead letter, in bytes.
	maxSendersHeaders = 8 << 10
)

// Why a dead letter or its bytes were discarded: label of a metric.
const (
	discardedShare = "tenant_share" // newer letters of the same tenant and kind
	discardedFull  = "stream_full"  // newer letters of anyone
	discardedBlobs = "blobs_full"   // its own bytes were refused
)

// notKeptPrivate is why the bytes of a private message are not kept.
const notKeptPrivate = "it was to be an answer, which may be secret"

// Letters takes messages that cannot be handled. [DeadLetters] is the real one.
type Letters interface {
	// Put stores a message with the reason and the error. The message is acknowledged only
	// when it returns nil.
	Put(ctx context.Context, m *Message, reason string, cause error) error
}

// DeadLetters stores what cannot be handled in the stream of dead letters.
type DeadLetters struct {
	js      jetstream.JetStream
	space   subjects.Space
	blobs   *Blobs
	metrics *metrics.Metrics

	writing [subjects.DeadBlobs]sync.Mutex // one writer a name of a blob
}

// NewDeadLetters returns the dead letters of space.
func NewDeadLetters(js jetstream.JetStream, space subjects.Space, blobs *Blobs, metrics *metrics.Metrics) *DeadLetters {
	return &DeadLetters{js: js, space: space, blobs: blobs, metrics: metrics}
}

// Put stores a message as a dead letter of the tenant that its subject names: what the body claims was
// not checked. The bytes of a private message are left out, more than 16 KiB are in a blob, and if
// the blobs refuse them the letter has their hash and the reason. Storing the same message again
// within the duplicate window stores nothing new.
func (d *DeadLetters) Put(ctx context.Context, m *Message, reason string, cause error) error {
	letter := d.letter(m, reason, cause)
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

func (d *DeadLetters) letter(m *Message, reason string, cause error) *nats.Msg {
	header := senders(m.Header)
	header.Set(HeaderReason, reason)
	header.Set(HeaderError, oneLine(cause.Error()))
	header.Set(HeaderSubject, m.Subject)
	header.Set(HeaderSequence, strconv.FormatUint(m.Lease.Seq, 10))
	header.Set(nats.MsgIdHdr, origin(m)+"/"+reason)
	if m.Private {
		header.Set(HeaderError, oneLine(events.LogText(cause)))
	}
	return &nats.Msg{Subject: d.space.DeadOf(m.Subject), Header: header, Data: m.Data}
}

// moveBytes takes the bytes out of a letter that must not or cannot hold them. It returns an error if
// another try may store them.
func (d *DeadLetters) moveBytes(ctx context.Context, m *Message, letter *nats.Msg) error {
	fits := len(m.Data) <= maxLetter && letter.Size() <= d.blobs.maxMessage()
	if fits && !m.Private {
		return nil
	}
	letter.Data = nil
	letter.Header.Set(HeaderSize, strconv.Itoa(len(m.Data)))
	if m.Private {
		letter.Header.Set(HeaderNotKept, notKeptPrivate)
		return nil
	}
	letter.Header.Set(HeaderSHA256, hashOf(m.Data))
	name, err := d.putBlob(ctx, letter.Subject, m)
	switch {
	case errors.Is(err, idempotency.ErrRefused):
		letter.Header.Set(HeaderNotKept, oneLine(err.Error()))
		d.metrics.DeadDiscarded.WithLabelValues(discardedBlobs).Inc()
	case err != nil:
		return err
	default:
		letter.Header.Set(HeaderBlob, name)
	}
	return nil
}

// putBlob stores the bytes of a message under one of the names that the letters on subject have. An
// older letter that has the name loses its bytes.
func (d *DeadLetters) putBlob(ctx context.Context, subject string, m *Message) (string, error) {
	app, kind, _ := d.space.ParseDead(subject)
	name := subjects.DeadBlob(app, kind, m.Lease.Seq)
	one := &d.writing[m.Lease.Seq%subjects.DeadBlobs]
	one.Lock()
	defer one.Unlock()
	replaced, err := d.blobs.replace(ctx, name, m.Data)
	if replaced {
		d.metrics.DeadDiscarded.WithLabelValues(discardedShare).Inc()
	}
	return name, err
}

// makesRoom returns why the server discards an older letter for this one, "" if it does not or if
// that is not known. Only the metric depends on it.
func (d *DeadLetters) makesRoom(ctx context.Context, letter *nats.Msg) string {
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
