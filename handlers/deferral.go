package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/subjects"
)

// Headers of a message that was put aside. Workers write them; a producer that does so only makes its
// own message older, and no answer earlier.
const (
	// HeaderDeferred is when the inbound stream took the message first, in RFC 3339.
	HeaderDeferred = "Oneturn-Deferred"
	// HeaderDeferrals is how often it was put aside.
	HeaderDeferrals = "Oneturn-Deferrals"
	// HeaderOffers is how often it was delivered before.
	HeaderOffers = "Oneturn-Offers"
	// HeaderOrigin are the deliveries that were put aside, as leases in their header form.
	HeaderOrigin = "Oneturn-Origin"
	// HeaderTurn are the keys of the turns that a sealed message may hold: who cannot open it cannot read them there.
	HeaderTurn = "Oneturn-Turn"
	// HeaderMsgID is the Nats-Msg-Id with which it was published.
	HeaderMsgID = "Oneturn-Msg-Id"
)

// Bounds of headers of a message that was put aside.
const (
	maxDeferrals = 1 << 20 // what is believed of the counts
	maxMsgID     = 256     // bytes of the id; a longer one is left out
)

// maxOrigins is how many deliveries a copy names at most, the last ones.
const maxOrigins = 8

// maxTurns is how many turns a message may hold at most.
const maxTurns = 2

// Deferral is a message that is put aside: it is published into the inbound stream again.
type Deferral struct {
	Subject string    // of the inbound stream
	ID      string    // the same when the same delivery or a later one is put aside again
	At      time.Time // by the server's clock
	Header  nats.Header
	Data    []byte
}

// DeferMessages returns the function that has the server deliver a message that is put aside to the
// workers' timers, which publish it again. Put aside again under the same id, it comes at the last
// time that was set.
func DeferMessages(js jetstream.JetStream, space subjects.Space) func(ctx context.Context, d Deferral) error {
	return func(ctx context.Context, d Deferral) error {
		timer, due, ok := space.DeferralTimer(d.Subject, d.ID)
		if !ok {
			return refusal(nil, "subject %.300q is not an inbound one", d.Subject)
		}
		m := jsapi.Scheduled(timer, due, d.At, d.Data)
		maps.Copy(m.Header, d.Header)
		if _, err := js.PublishMsg(ctx, m); err != nil {
			if refused := refused(err, space.TimersStream(), "make it smaller"); refused != nil {
				return refused
			}
			return fmt.Errorf("put a message aside: %w", err)
		}
		return nil
	}
}

// deferral is a message as it is put aside until a time. What may be secret is sealed: neither the
// schedule nor what it delivers can be erased.
func (h *Handlers) deferral(m *Message, at time.Time) (Deferral, error) {
	sum := sha256.Sum256([]byte(origin(m)))
	subject := h.againOn(m)
	header, _ := bounded(m.Header)
	d := Deferral{Subject: subject, ID: asideID(base64.RawURLEncoding.EncodeToString(sum[:])[:asideIDSize], m.asideBytes()), At: at, Header: header, Data: m.Data}
	d.Header.Set(HeaderDeferred, m.Stored.UTC().Format(time.RFC3339Nano))
	d.Header.Set(HeaderDeferrals, strconv.Itoa(m.deferrals+1))
	d.Header.Set(HeaderOffers, strconv.FormatUint(m.offers(), 10))
	d.Header[HeaderOrigin] = m.originsWithThis()
	named := nats.MsgIdHdr
	if m.deferrals > 0 {
		named = HeaderMsgID
	}
	if id := m.Header.Get(named); id != "" && len(id) <= maxMsgID {
		d.Header.Set(HeaderMsgID, id)
	}
	if m.secret && !m.closed && (m.asksSecret || h.SecretKeys.Ready() == nil) { // without keys no question here is secret
		var err error
		if d.Data, err = h.SecretKeys.Seal(sealedAs(subject), m.Data); err != nil {
			return d, errors.Join(errUnsealed, err)
		}
	}
	if secrets.Sealed(d.Data) {
		for _, key := range m.turns {
			d.Header[HeaderTurn] = append(d.Header[HeaderTurn], key.String())
		}
	}
	return d, nil
}

// againOn is the subject on which a message is published again: its own, and for an answer of any kind one
// on which only workers may publish, so that its age can be believed.
func (h *Handlers) againOn(m *Message) string {
	in, ok := h.Space.ParseIn(m.Subject)
	if !ok || !events.AnswerKind(in.Kind) {
		return m.Subject
	}
	in.Kind = events.KindDeferredResponse
	if subject, ok := h.Space.InOf(in); ok {
		return subject
	}
	return m.Subject
}

// onAnswers makes of the subject of an answer that was put aside that of any answer, and reports whether
// only a worker can have published it.
func (h *Handlers) onAnswers(m *Message) bool {
	in, _ := h.Space.ParseIn(m.Subject)
	if in.Kind != events.KindDeferredResponse {
		return false
	}
	in.Kind = events.KindToolCallResponse
	subject, ok := h.Space.InOf(in)
	if ok {
		m.Subject = subject
	}
	return ok
}

// errUnsealed says that this worker cannot seal a message, and so cannot put it aside.
var errUnsealed = errors.New("it cannot be sealed")

// sealedAs binds what is sealed to its subject.
func sealedAs(subject string) string { return "deferred." + subject }

// kept returns the headers of a message without those that the server would obey.
func kept(all nats.Header) nats.Header {
	header := nats.Header{}
	for name, values := range all {
		if lower := strings.ToLower(name); lower != "status" && !strings.HasPrefix(lower, "nats-") {
			header[name] = values
		}
	}
	return header
}

// bounded returns the sender's headers of a message as far as they fit, first those that a worker reads, and
// their bytes. Headers of its own are set by the worker and take nothing of the bound.
func bounded(all nats.Header) (header nats.Header, size int) {
	senders := kept(all)
	header = nats.Header{}
	for _, name := range []string{HeaderDeferred, HeaderDeferrals, HeaderOffers, HeaderOrigin, HeaderTurn, HeaderMsgID} {
		delete(senders, name)
	}
	for _, name := range append([]string{subjects.HeaderReply, idempotency.HeaderTrace, traceParent}, slices.Sorted(maps.Keys(senders))...) {
		more := 0
		for _, value := range senders[name] {
			more += len(name) + len(value) + len(": \r\n")
		}
		if more == 0 || size+more > maxSendersHeaders {
			continue
		}
		size += more
		header[name] = senders[name]
		delete(senders, name)
	}
	return header, size
}

// restore makes of a message that was put aside what it was before: as old, and with its data open.
// What the headers claim about its age never makes it younger than it is.
func (h *Handlers) restore(m *Message) error {
	m.arrived, m.size = m.Stored, len(m.Data)
	subject := m.Subject // that of the seal
	m.byWorker = h.onAnswers(m)
	deferred := m.Header.Get(HeaderDeferred)
	if deferred == "" {
		return nil // as nearly all are: a failed parse would cost an allocation
	}
	first, err := time.Parse(time.RFC3339Nano, deferred)
	if err != nil || first.After(m.Stored) {
		return nil //nolint:nilerr // a message like any other
	}
	count := func(name string) int {
		n, err := strconv.Atoi(m.Header.Get(name))
		if err != nil {
			return 0
		}
		return min(max(n, 0), maxDeferrals)
	}
	m.Stored, m.deferrals, m.before = first, max(count(HeaderDeferrals), 1), uint64(count(HeaderOffers))
	m.origins = originsOf(m.Header)
	if !secrets.Sealed(m.Data) {
		return nil
	}
	m.Private, m.secret, m.sealed = true, true, true
	data, err := h.SecretKeys.Open(sealedAs(subject), m.Data)
	if err != nil {
		m.closed, m.turns = true, turnsOf(m.Header)
		return fmt.Errorf("open a message that was put aside: %w", err)
	}
	m.Data = data
	return nil
}

// originsOf reads the deliveries of which a message is a copy. What cannot be read is none.
func originsOf(header nats.Header) (origins []idempotency.Lease) {
	texts := header[HeaderOrigin]
	for _, text := range texts[max(len(texts)-maxOrigins, 0):] {
		if l, err := idempotency.ParseLease(text); err == nil {
			origins = append(origins, l)
		}
	}
	return origins
}

// turnsOf reads the keys of the turns that a sealed message may hold. What cannot be read is none.
func turnsOf(header nats.Header) (turns []subjects.Key) {
	texts := header[HeaderTurn]
	for _, text := range texts[:min(len(texts), maxTurns)] {
		if key, ok := subjects.ParseCall(text); ok {
			turns = append(turns, key)
		}
	}
	return turns
}

// originsWithThis are the deliveries that were put aside when this one is, too.
func (m *Message) originsWithThis() (texts []string) {
	for _, l := range m.origins {
		texts = append(texts, l.String())
	}
	return append(texts, m.Lease.String())
}

// unopened handles a sealed message that this worker cannot open. Another worker may have its key, as while
// keys are rotated, so it is given back for as long as a turn may live.
func (h *Handlers) unopened(m *Message, err error) Disposition {
	age := h.age(m)
	if !m.byWorker || !errors.Is(err, secrets.ErrUnknownKey) || h.MaxTurnLife > 0 && age >= h.MaxTurnLife {
		return h.unparsed(m, err)
	}
	h.often(m, slog.LevelWarn, "an answer that was put aside waits for a worker with its key", "", "seq", m.Lease.Seq,
		"age", age.Round(time.Second), "err", events.LogText(err))
	if d, back := h.giveBack(m, h.rarely(m)); back {
		return d
	}
	d := h.ackUnlessHeldLater(m)
	if d.Do == Ack {
		h.Metrics.Answers.WithLabelValues(string(events.AnswerUnknown)).Inc()
		h.tell(m, events.NewAnswerResult(events.AnswerUnknown, "", textNoRoom))
	}
	return d
}

// sent is when an answer was sent, as far as it can be believed: a header of the sender makes no late answer
// one in time.
func (m *Message) sent() time.Time {
	if m.byWorker {
		return m.Stored
	}
	return m.arrived
}

// offers is how often a message was delivered, before it was put aside counted in.
func (m *Message) offers() uint64 { return m.before + m.Lease.Delivery }
