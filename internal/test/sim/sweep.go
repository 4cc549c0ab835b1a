package sim

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/subjects"
)

// Sweeps run as in a worker, one read at a time. The world decides when one is due, and checks what it publishes and
// what it leaves for the next.

// maxSweeps bounds the sweeps after everything has healed.
const maxSweeps = 20

// swept is what sweeps have left for the next one.
type swept struct {
	running *fiber // nil before the first
	healthy int    // sweeps since everything has healed
	begun   int    // sweeps
	resumes int    // that they have published
}

// sweeping is one sweep.
type sweeping struct {
	w     *world
	began int // step
	ended int // step at which it had done everything, 0 before
}

// sweep has a worker sweep. Workers do so one after the other, unless one stands still.
func (p *process) sweep() {
	w := p.w
	s := &sweeping{w: w, began: w.steps}
	w.swept.begun++
	w.tracef("%s begins to sweep", p.name)
	w.swept.running = w.start(p, nil, func(*fiber) {
		finder := &sweep.Sweep{
			Space: w.sim.space, JS: sweptServer{w: w, s: s}, Store: w.store, LeaseHeld: w.leaseHeld,
			AckWait: usualAckWait, PageTurns: 2, Concurrency: 1, Logger: slog.New(slog.DiscardHandler),
		}
		out, err := finder.Run(p.ctx, sweep.PagesIn(w.documents), w.now, sweep.Scope{}, finder.Resume)
		w.tracef("%s has swept: %d open, %d resumed, %v", p.name, out.Open, out.Resumed, err)
		if err == nil {
			s.ended = w.steps
		}
	})
}

// maySweep reports whether a sweep is due: none is being done, or by a worker that stands still.
func (w *world) maySweep() bool {
	x := w.swept.running
	return x == nil || x.over || x.p.paused
}

// sweepRarely is in how many steps a sweep begins: often, when there is something to find, or when another one stands
// still in the middle.
func (w *world) sweepRarely() int {
	if x := w.swept.running; x != nil && !x.over {
		return 2
	}
	if slices.ContainsFunc(w.turns, func(t *turn) bool { return t.purged }) || slices.ContainsFunc(w.conversation, func(c *chatMessage) bool { return c.purged }) {
		return 2
	}
	return 32
}

// sweep has the sweep run that is due, and reports whether there is something to sweep.
func (w *world) sweep() bool {
	open := func(t *turn) bool {
		h := w.history(t)
		return h.claim != nil && len(h.responses) == 0
	}
	if w.swept.healthy == maxSweeps || !slices.ContainsFunc(w.turns, open) && !slices.ContainsFunc(w.conversation, w.isOpen) {
		return false
	}
	w.swept.healthy++
	w.pass(3 * usualAckWait) // so that it finds no turn too young
	w.processes[0].sweep()
	return true
}

// write is what the server does with a write of a sweep.
func (s *sweeping) write(ctx context.Context, what string, do func() error) error {
	w := s.w
	w.yield(what)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case w.strike(UnknownNever, 6):
		return errNoAnswer
	case w.strike(UnknownNow, 6):
		return errors.Join(do(), errNoAnswer)
	}
	return do()
}

// sweptServer is what a sweep uses of JetStream: the headers of the journal, and the inbound stream.
type sweptServer struct {
	jetstream.JetStream

	w *world
	s *sweeping
}

// PublishMsg implements [jetstream.JetStream]: it publishes a resume.
func (j sweptServer) PublishMsg(ctx context.Context, r *nats.Msg, _ ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	w := j.w
	body, err := events.Parse(r.Data)
	if err != nil {
		return nil, err
	}
	e, err := body.Resume()
	if err != nil {
		return nil, err
	}
	t, c := w.turnOf(e.Turn), w.chatMessageOf(e.Key)
	if c != nil {
		t = c.turn
	}
	in, _ := w.sim.space.ParseIn(r.Subject)
	m := &message{w: w, turn: t, chat: c, pool: in.Pool, kind: events.KindResume, subject: r.Subject, header: r.Header, body: r.Data}
	if err := j.s.write(ctx, "publish a resume", func() error {
		w.checkResume(j.s, t, c)
		w.enqueue(m)
		return nil
	}); err != nil {
		return nil, err
	}
	m.sweep = j.s
	w.swept.resumes++
	return &jetstream.PubAck{Stream: stream, Sequence: m.seq}, nil
}

// checkResume: while the resume that a sweep has published is in the stream, later ones publish none.
func (w *world) checkResume(s *sweeping, t *turn, c *chatMessage) {
	for _, m := range w.queue {
		if m.turn == t && m.chat == c && m.sweep != nil && !m.settled && m.sweep.ended > 0 && m.sweep.ended < s.began {
			w.violatef("%s: a sweep publishes a resume, though #%d of an earlier sweep is still in the stream", t.id.Turn, m.seq)
		}
	}
}

// sweepKeys is what the keys of the sweeps in the bucket of context variables begin with.
var sweepKeys = strings.TrimSuffix(subjects.SweepKey("0"), "0") //nolint:gochecknoglobals // a constant

// checkSwept: the sweeps know of each turn without a response whose claim they have read.
func (w *world) checkSwept() {
	var s sweep.State
	if json.Unmarshal(w.documents.data[subjects.SweepKey("state")], &s) != nil {
		return // no sweep has committed anything
	}
	known := map[string]bool{}
	for n := s.First; n < s.Next; n++ {
		var page sweep.Page
		_ = json.Unmarshal(w.documents.data[subjects.SweepKey(strconv.FormatUint(n, 10))], &page) // one that was dropped has none
		for _, o := range page.Turns {
			known[o.Key] = true
		}
	}
	for _, c := range w.conversation {
		if text := w.textOf(c); text != nil && text.Seq < s.From && w.isOpen(c) && !known[c.key.String()] {
			w.violatef("%s: a sweep has read its text, it is not complete, and no sweep will read it again", c.event.ID)
		}
	}
	for _, t := range w.turns {
		h := w.history(t)
		if h.claim != nil && h.claim.Seq < s.From && len(h.responses) == 0 && !known[t.key.String()] {
			w.violatef("%s: a sweep has read its claim, it has no response, and no sweep will read it again", t.id.Turn)
		}
	}
}

// Stream implements [jetstream.JetStream].
func (j sweptServer) Stream(ctx context.Context, _ string) (jetstream.Stream, error) {
	if err := j.w.store.read(ctx, "where the journal ends"); err != nil {
		return nil, err
	}
	return sweptStream{last: uint64(len(j.w.store.log))}, nil
}

// OrderedConsumer implements [jetstream.JetStream].
func (j sweptServer) OrderedConsumer(ctx context.Context, _ string, c jetstream.OrderedConsumerConfig) (jetstream.Consumer, error) {
	if err := j.w.store.read(ctx, "read headers"); err != nil {
		return nil, err
	}
	return &sweptHeaders{w: j.w, next: c.OptStartSeq}, nil
}

// DeleteConsumer implements [jetstream.JetStream].
func (sweptServer) DeleteConsumer(context.Context, string, string) error { return nil }

// sweptStream is the journal as a sweep asks for it.
type sweptStream struct {
	jetstream.Stream

	last uint64
}

// CachedInfo implements [jetstream.Stream].
func (s sweptStream) CachedInfo() *jetstream.StreamInfo {
	return &jetstream.StreamInfo{State: jetstream.StreamState{FirstSeq: 1, LastSeq: s.last}}
}

// sweptHeaders reads the headers of the journal.
type sweptHeaders struct {
	jetstream.Consumer

	w    *world
	next uint64
}

func (h *sweptHeaders) pending() uint64 { return uint64(len(h.w.store.log)) + 1 - h.next }

// CachedInfo implements [jetstream.Consumer].
func (h *sweptHeaders) CachedInfo() *jetstream.ConsumerInfo {
	return &jetstream.ConsumerInfo{NumPending: h.pending()}
}

// Messages implements [jetstream.Consumer].
func (h *sweptHeaders) Messages(...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	return sweptMessages{sweptHeaders: h}, nil
}

// sweptMessages are the messages of a reader of headers.
type sweptMessages struct {
	jetstream.MessagesContext
	*sweptHeaders
}

// Next implements [jetstream.MessagesContext].
func (h sweptMessages) Next(...jetstream.NextOpt) (jetstream.Msg, error) {
	r := h.w.store.log[h.next-1]
	h.next++
	return sweptHeader{
		subject: h.w.sim.space.JournalSubject(r.Key),
		header:  nats.Header{idempotency.HeaderLease: {r.Meta.Lease.String()}, idempotency.HeaderOutcome: {r.Meta.Outcome}},
		meta:    jetstream.MsgMetadata{Sequence: jetstream.SequencePair{Stream: r.Seq}, NumPending: h.pending(), Timestamp: r.Time},
	}, nil
}

// Stop implements [jetstream.MessagesContext].
func (sweptMessages) Stop() {}

// sweptHeader is a message of the journal without its contents.
type sweptHeader struct {
	jetstream.Msg

	subject string
	header  nats.Header
	meta    jetstream.MsgMetadata
}

// Headers implements [jetstream.Msg].
func (h sweptHeader) Headers() nats.Header { return h.header }

// Subject implements [jetstream.Msg].
func (h sweptHeader) Subject() string { return h.subject }

// Metadata implements [jetstream.Msg].
func (h sweptHeader) Metadata() (*jetstream.MsgMetadata, error) { return &h.meta, nil }

// matches reports whether a key is the given one, of the turn of a pattern *.<turn>.>, or all but the last token of one
// with a last token *.
func matches(key, pattern string) bool {
	if prefix, last := strings.CutSuffix(pattern, ".*"); last {
		at := strings.LastIndexByte(key, '.')
		return at >= 0 && key[:at] == prefix
	}
	of, ok := strings.CutPrefix(pattern, "*")
	if !ok {
		return key == pattern
	}
	_, rest, _ := strings.Cut(key, ".")
	return strings.HasPrefix("."+rest, strings.TrimSuffix(of, ">"))
}
