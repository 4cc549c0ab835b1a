package sim

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
)

// The journal's bucket as its leader sees it, with reads of a replaced leader that lag and writes whose answer is lost.

var errNoAnswer = errors.New("simulated: no answer")

// store is the journal bucket: a log in which a key can be created once, and replaced by its sequence.
// Operations are atomic at the server; what the network makes of request and answer is drawn.
type store struct {
	w    *world
	log  []idempotency.Record // by sequence, from 1
	keys map[string]uint64
	by   map[string]uint64 // which message brought what was written under a nonce, by its sequence

	expired map[uint64]bool
	ends    map[string]ending // by the nonce of the response of a turn
}

// ending is what its worker had read of a turn when it sent the response.
type ending struct {
	records uint64
	stale   bool
}

func newStore(w *world) *store {
	return &store{w: w, keys: map[string]uint64{}, by: map[string]uint64{}, expired: map[uint64]bool{}, ends: map[string]ending{}}
}

// put is what the server does with a create.
func (s *store) put(r idempotency.Record) (uint64, error) {
	if seq := s.keys[r.Key]; seq != r.Seq {
		return 0, &idempotency.ExistsError{Key: r.Key, Seq: seq}
	}
	r.Seq, r.Time = uint64(len(s.log)+1), s.w.now
	s.log = append(s.log, r)
	s.keys[r.Key] = r.Seq
	s.w.tracef("  journal %d: %s epoch %d %s%s", r.Seq, short(r.Key), r.Meta.Epoch, r.Meta.Outcome, r.Meta.Lease)
	if k, ok := subjects.ParseKey(r.Key); ok {
		switch k.Kind {
		case events.KindToolCall:
			if r.Meta.Message != "" {
				s.w.appears(k.OfTurn())
			}
		case events.KindCancel:
			s.w.announce(func(p *process) { p.handlers.CancelSeen(k.Key) })
		case events.RecordAsk:
			s.w.askedNow(k)
		case events.RecordAck:
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
	w.checkClaim(t.t, r)
	w.checkOwner(t.t, r)
	if t.t != nil {
		s.by[r.Meta.Nonce] = t.t.lease.Seq
		if k, _ := subjects.ParseKey(r.Key); k.Kind == events.KindToolResponse && k.Call == subjects.SingleCall {
			if _, sent := s.ends[r.Meta.Nonce]; !sent {
				s.ends[r.Meta.Nonce] = ending{t.t.listed, t.t.sawStaleRead}
			}
		}
	}
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
	if err != nil && t.t != nil {
		t.t.refused[r.Key] = uint64(len(s.log))
	}
	if k, _ := subjects.ParseKey(r.Key); err == nil && k.Kind == "takeover" && w.strike(OldLeader, 1) {
		t.t.old = 1 + w.rng.IntN(8)
	}
	t.yield("created " + short(r.Key))
	return seq, err
}

// At implements [idempotency.Store].
func (s *store) At(ctx context.Context, seq uint64) (idempotency.Record, error) {
	if err := s.read(ctx, "at"); err != nil {
		return idempotency.Record{}, err
	}
	if seq == 0 || seq > uint64(len(s.log)) || s.keys[s.log[seq-1].Key] != seq {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return s.log[seq-1], nil
}

// Last implements [idempotency.Store].
func (s *store) Last(ctx context.Context, key string) (idempotency.Record, error) {
	if err := s.read(ctx, "last "+short(key)); err != nil {
		return idempotency.Record{}, err
	}
	k, _ := subjects.ParseKey(strings.Replace(key, idempotency.AnyToken, "x", 1)) // it may be a filter
	if t := s.w.active.t; t != nil {
		t.looked[checkpoint{k.OfTurn(), k.Kind}], t.looked[checkpoint{k.Key, k.Kind}] = len(s.log), len(s.log)
	}
	for _, r := range slices.Backward(s.seen(k.Key)) {
		if matches(r.Key, key) && !s.expired[r.Seq] {
			return r, nil
		}
	}
	return idempotency.Record{}, idempotency.ErrNotFound
}

// LastOf implements [idempotency.Store]: one read after the other.
func (s *store) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, s.Last, keys)
}

// Scan implements [idempotency.Store]. Like the real one it lists the names of the records in one request and then reads
// those that the caller does not know; much can happen between the two.
func (s *store) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	if err := s.read(ctx, "list"); err != nil {
		return nil, err
	}
	if t := s.w.active.t; t != nil {
		t.listed = uint64(len(s.log))
	}
	listed := s.seen(key)
	if t := s.w.active.t; t != nil && t.old == 0 {
		t.read = len(s.log)
		t.looked[checkpoint{key, events.KindToolCall}], t.looked[checkpoint{key, events.RecordTakeover}] = t.read, t.read
	}
	if err := s.read(ctx, "read what is listed"); err != nil {
		return nil, err
	}
	var found []idempotency.Record
	for _, r := range listed {
		if of, ok := subjects.ParseKey(r.Key); ok && of.OfTurn() == key && !s.expired[r.Seq] {
			found = slices.DeleteFunc(found, func(old idempotency.Record) bool { return old.Key == r.Key }) // replaced
			found = append(found, r)
		}
	}
	for i := range found {
		if n := slices.IndexFunc(known, func(r idempotency.Record) bool { return r.Key == found[i].Key && r.Err == nil }); n >= 0 {
			found[i] = known[n] // not read again
		}
	}
	slices.SortFunc(found, func(a, b idempotency.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return found, nil
}

// Erase implements [idempotency.Store]: nothing in a simulation is secret.
func (*store) Erase(context.Context, idempotency.Record) error { return nil }

// seen is the log as one read of a turn sees it.
func (s *store) seen(key subjects.Key) []idempotency.Record {
	if t := s.w.active.t; t != nil && t.old > 0 {
		t.old--
		s.w.servesStale(key)
		s.w.tracef("  the old leader answers with the journal up to %d", t.read)
		return s.log[:t.read]
	}
	stale := false
	if x := s.w.swept.running; len(s.log) > 0 && x != nil && s.w.active == x {
		stale = s.w.misleads(8) // it reads a turn once, and may never read it again
	} else if len(s.log) > 0 {
		stale = s.w.strike(StaleRead, 8)
	}
	if stale {
		s.w.servesStale(key)
		n := s.w.rng.IntN(len(s.log))
		s.w.tracef("  a stale read gives the journal up to %d", n)
		return s.log[:n]
	}
	return s.log
}

// servesStale notes that a read of a turn was not answered as the journal was.
func (w *world) servesStale(key subjects.Key) {
	if t := w.active.t; t != nil {
		t.sawStaleRead = true
	}
	for _, t := range w.turns {
		if t.key == key.OfTurn() {
			t.sawStaleRead++
		}
	}
	for _, c := range w.conversation {
		if c.key == key.OfTurn() || slices.ContainsFunc(c.turns, func(t *turn) bool { return t.key == key.OfTurn() }) {
			c.sawStaleRead++
		}
	}
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
	if parts[4] != subjects.SingleCall {
		return strings.Join(parts[3:], ".")
	}
	return strings.Join(append(parts[3:4:4], parts[5:]...), ".")
}
