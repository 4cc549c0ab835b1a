package deferral

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// This file turns a message into its deferred form: Pack writes its age, its deliveries and its data, sealed if need be,
// into a Message, and a Publisher has the server deliver that to the timers of a worker, which publish it again.

// Message is a message that is published into the inbound stream again later.
type Message struct {
	Subject string    // of the inbound stream
	ID      string    // the same when the same delivery or a later one is deferred again
	At      time.Time // by the server's clock
	Header  nats.Header
	Data    []byte
}

// Publisher returns the function that has the server deliver a deferred message to the workers' timers, which
// publish it again. Deferred again under the same id, it is published at the last time that was set.
func Publisher(js jetstream.JetStream, space subjects.Space) func(ctx context.Context, d Message) error {
	return func(ctx context.Context, d Message) error {
		timer, due, ok := space.DeferralTimer(d.Subject, d.ID)
		if !ok {
			return store.Refusal(nil, "subject %.300q is not an inbound one", d.Subject)
		}
		m := jsapi.Scheduled(timer, due, d.At, d.Data)
		maps.Copy(m.Header, d.Header)
		if _, err := js.PublishMsg(ctx, m); err != nil {
			if refused := store.Refused(err, space.TimersStream(), "make it smaller"); refused != nil {
				return refused
			}
			return fmt.Errorf("defer a message: %w", err)
		}
		return nil
	}
}

// Packing is what [State.Pack] needs besides the message.
type Packing struct {
	Space subjects.Space
	Keys  *secrets.Keys
	At    time.Time      // when to publish it again, by the server's clock
	Seal  bool           // the message may be secret, and is sealed if there are keys
	Must  bool           // it is known to be secret: without keys it cannot be deferred
	Turns []subjects.Key // that it may be the lease of
}

// Pack returns a message as it is deferred until a time. What may be secret is sealed: neither the schedule nor what
// it delivers can be erased.
func (s *State) Pack(m *inbound.Message, p Packing) (Message, error) {
	sum := sha256.Sum256([]byte(m.Origin()))
	subject := againOn(p.Space, m.Subject)
	header, _ := bounded(m.Header)
	d := Message{Subject: subject, ID: scheduleID(base64.RawURLEncoding.EncodeToString(sum[:])[:scheduleHashSize], s.Bytes(m)), At: p.At, Header: header, Data: m.Data}
	d.Header.Set(HeaderDeferred, m.Stored.UTC().Format(time.RFC3339Nano))
	d.Header.Set(HeaderDeferrals, strconv.Itoa(s.Deferrals+1))
	d.Header.Set(HeaderOffers, strconv.FormatUint(s.Before+m.Lease.Delivery, 10))
	for _, l := range s.Origins {
		d.Header[HeaderOrigin] = append(d.Header[HeaderOrigin], l.String())
	}
	d.Header[HeaderOrigin] = append(d.Header[HeaderOrigin], m.Lease.String())
	named := nats.MsgIdHdr
	if s.Deferrals > 0 {
		named = HeaderMsgID
	}
	if id := m.Header.Get(named); id != "" && len(id) <= maxMsgID {
		d.Header.Set(HeaderMsgID, id)
	}
	if p.Seal && !s.Closed && (p.Must || p.Keys.Ready() == nil) { // without keys no question here is secret
		var err error
		if d.Data, err = p.Keys.Seal(sealedAs(subject), m.Data); err != nil {
			return d, errors.Join(ErrUnsealed, err)
		}
	}
	if secrets.Sealed(d.Data) {
		for _, key := range p.Turns {
			d.Header[HeaderTurn] = append(d.Header[HeaderTurn], key.String())
		}
	}
	return d, nil
}

// againOn is the subject on which a message is published again: the same, and for an answer of any kind one
// on which only workers may publish, so that its age can be trusted.
func againOn(space subjects.Space, subject string) string {
	in, ok := space.ParseIn(subject)
	if !ok || !events.AnswerKind(in.Kind) {
		return subject
	}
	in.Kind = events.KindDeferredResponse
	if again, ok := space.InOf(in); ok {
		return again
	}
	return subject
}

// ErrUnsealed is the error of a message that this worker cannot seal, and so cannot defer.
var ErrUnsealed = errors.New("it cannot be sealed")

// sealedAs binds what is sealed to its subject.
func sealedAs(subject string) string { return "deferred." + subject }

// Spread returns a time up to most that is another one for each message, and always the same for one.
func Spread(seq uint64, most time.Duration) time.Duration {
	const golden = 0x9E3779B97F4A7C15 // neighbours land far apart
	return time.Duration(seq * golden % uint64(most+1))
}
