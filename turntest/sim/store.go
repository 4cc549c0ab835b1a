package sim

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

var errNoAnswer = errors.New("simulated: no answer")

// store is the journal bucket: a log in which a key can be created once. Operations are
// atomic at the server; what the network makes of request and answer is drawn.
type store struct {
	w    *world
	log  []idempotency.Record // by sequence, from 1
	keys map[string]uint64
}

func newStore(w *world) *store { return &store{w: w, keys: map[string]uint64{}} }

// put is what the server does with a create.
func (s *store) put(r idempotency.Record) (uint64, error) {
	if seq, ok := s.keys[r.Key]; ok {
		return 0, &idempotency.ExistsError{Key: r.Key, Seq: seq}
	}
	r.Seq, r.Time = uint64(len(s.log)+1), s.w.now
	s.log = append(s.log, r)
	s.keys[r.Key] = r.Seq
	s.w.tracef("  journal %d: %s epoch %d %s%s", r.Seq, short(r.Key), r.Meta.Epoch, r.Meta.Verdict, r.Meta.Lease)
	if k, ok := subjects.ParseKey(r.Key); ok {
		switch k.Kind {
		case events.KindCancel:
			s.w.announce(func(p *process) { p.handlers.CancelSeen(k.Key) })
		case subjects.KindAsk:
			s.w.askedNow(k)
		case subjects.KindAck:
			s.w.announce(func(p *process) { p.handlers.AckSeen(k) })
		}
	}
	return r.Seq, nil
}

// Create implements [idempotency.Store].
func (s *store) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	t := s.w.active
	r.Data = slices.Clone(r.Data)
	t.flight = func() { _, _ = s.put(r) } // refused is fine
	t.yield("create " + short(r.Key))
	t.flight = nil
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	w := s.w
	switch {
	case w.strike(Undecided, 12):
		return 0, idempotency.ErrUndecided
	case w.strike(UnknownNever, 12):
		return 0, errNoAnswer
	case w.strike(UnknownLater, 12):
		w.flying = append(w.flying, func() { _, _ = s.put(r) })
		return 0, errNoAnswer
	case w.strike(UnknownNow, 12):
		_, _ = s.put(r)
		return 0, errNoAnswer
	}
	seq, err := s.put(r)
	t.yield("created " + short(r.Key))
	return seq, err
}

// At implements [idempotency.Store].
func (s *store) At(ctx context.Context, seq uint64) (idempotency.Record, error) {
	if err := s.read(ctx, "at"); err != nil {
		return idempotency.Record{}, err
	}
	if seq == 0 || seq > uint64(len(s.log)) {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return s.log[seq-1], nil
}

// Last implements [idempotency.Store].
func (s *store) Last(ctx context.Context, key string) (idempotency.Record, error) {
	if err := s.read(ctx, "last "+short(key)); err != nil {
		return idempotency.Record{}, err
	}
	seq := s.keys[key]
	if seq == 0 || seq > uint64(len(s.seen())) {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return s.log[seq-1], nil
}

// Scan implements [idempotency.Store]. Like the real one it reads the public records before
// the private ones, and much can happen between the two.
func (s *store) Scan(ctx context.Context, key subjects.Key) ([]idempotency.Record, error) {
	if err := s.read(ctx, "scan public"); err != nil {
		return nil, err
	}
	found := s.match(nil, key.PublicRecords())
	if err := s.read(ctx, "scan private"); err != nil {
		return nil, err
	}
	return s.match(found, key.PrivateRecords()), nil
}

// Erase implements [idempotency.Store]: nothing in a simulation is secret.
func (*store) Erase(context.Context, idempotency.Record) error { return nil }

// match adds the visible records under a filter, in the order of their sequences.
func (s *store) match(found []idempotency.Record, filter string) []idempotency.Record {
	prefix := strings.TrimSuffix(filter, ">")
	for _, r := range s.seen() {
		if strings.HasPrefix(r.Key, prefix) {
			i := len(found)
			for i > 0 && found[i-1].Seq > r.Seq {
				i--
			}
			found = append(found[:i], append([]idempotency.Record{r}, found[i:]...)...)
		}
	}
	return found
}

// seen is the log as one read sees it.
func (s *store) seen() []idempotency.Record {
	if len(s.log) > 0 && s.w.strike(StaleRead, 8) {
		if t := s.w.active.t; t != nil {
			s.w.hit(t.lease)
		}
		return s.log[:s.w.rng.IntN(len(s.log))]
	}
	return s.log
}

func (s *store) read(ctx context.Context, what string) error {
	s.w.yield(what)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.w.strike(FailedRead, 12) {
		return errNoAnswer
	}
	return nil
}

// short is a journal key without what is the same in all of them.
func short(key string) string {
	parts := strings.Split(key, ".")
	if len(parts) < 6 {
		return key
	}
	return strings.Join(append(parts[3:4:4], parts[5:]...), ".")
}
