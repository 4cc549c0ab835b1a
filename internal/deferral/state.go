package deferral

import (
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/subjects"
)

// State is what the headers of a message show of the times when it was deferred.
type State struct {
	Size      int       // of its data as it was delivered
	Arrived   time.Time // when the stream took it last, which is Stored unless it was deferred
	ByWorker  bool      // its subject is one on which only workers publish: the age that its headers claim is true
	Deferrals int       // how often it was deferred
	Before    uint64    // deliveries before that
	Sealed    bool      // its data was delivered sealed
	Closed    bool      // its data is still sealed: the worker lacks its key

	Origins []idempotency.Lease // the deliveries that were deferred, the last one at the end
	Turns   []subjects.Key      // that a closed message may be the lease of
}

// Read restores a message that was deferred: its age, and its data unsealed. The age that the headers claim never makes
// it younger than it is. An error of a sealed message leaves it Closed.
func Read(m *inbound.Message, space subjects.Space, keys *secrets.Keys) (State, error) {
	s := State{Arrived: m.Stored, Size: len(m.Data)}
	subject := m.Subject // the one that the seal is bound to
	s.ByWorker = onAnswers(m, space)
	deferred := m.Header.Get(HeaderDeferred)
	if deferred == "" {
		return s, nil // as nearly all are: a failed parse would cost an allocation
	}
	first, err := time.Parse(time.RFC3339Nano, deferred)
	if err != nil || first.After(m.Stored) {
		return s, nil //nolint:nilerr // a message like any other
	}
	m.Stored, s.Deferrals, s.Before = first, max(count(m.Header, HeaderDeferrals), 1), uint64(count(m.Header, HeaderOffers))
	s.Origins = originsOf(m.Header)
	if !secrets.Sealed(m.Data) {
		return s, nil
	}
	m.Private, s.Sealed = true, true
	data, err := keys.Open(sealedAs(subject), m.Data)
	if err != nil {
		s.Closed, s.Turns = true, turnsOf(m.Header)
		return s, fmt.Errorf("open a deferred message: %w", err)
	}
	m.Data = data
	return s, nil
}

// onAnswers replaces the subject of a deferred answer by the one of any answer, and reports whether
// only a worker can have published it.
func onAnswers(m *inbound.Message, space subjects.Space) bool {
	in, _ := space.ParseIn(m.Subject)
	if in.Kind != events.KindDeferredResponse {
		return false
	}
	in.Kind = events.KindToolCallResponse
	subject, ok := space.InOf(in)
	if ok {
		m.Subject = subject
	}
	return ok
}

// Sent is when an answer was sent. It does not trust a header of the sender, which could make a late answer look
// timely.
func (s *State) Sent(m *inbound.Message) time.Time {
	if s.ByWorker {
		return m.Stored
	}
	return s.Arrived
}

// Bytes is how many bytes a message counts for when it is deferred: its data as it was delivered, and what is
// kept of the headers of its sender. It is the same for each delivery.
func (s *State) Bytes(m *inbound.Message) int {
	_, headers := bounded(m.Header)
	return s.Size + headers
}
