package kvstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// A create is a publish whose acknowledgement the store waits for. The publisher keeps one subscription for each record that
// is on its way at the same time (slot); a slot is used again for the next record, under a new reply subject. One
// goroutine (watch) ends the creates whose acknowledgement is late, whose context has ended or whose connection is lost:
// their outcome is unknown. parseAck reads what the server replies.

// ackTimeout is how long a publish waits for its acknowledgement before its outcome counts
// as unknown.
const ackTimeout = 5 * time.Second

// Outcomes of a publish that are unknown, never failures.
var (
	errAckTimeout   = errors.New("no acknowledgement in time")
	errDisconnected = errors.New("disconnected before the acknowledgement")
	errClosed       = errors.New("the store is closed")
)

// pubAck is the server's answer to a publish.
type pubAck struct {
	seq  uint64              // sequence stored, or the one in the way
	code jetstream.ErrorCode // 0 when stored
	text string
}

// checkPending is how often a publisher checks for creates that have lasted too long or whose
// context has ended. One ticker for all costs nothing a record; a timer each would.
const checkPending = 100 * time.Millisecond

// publisher publishes to JetStream and waits for acknowledgements at a third of the cost of
// nats.go's own synchronous publish. Each record in flight has a slot with an inbox, so that
// the connection passes an acknowledgement directly to the waiting goroutine. Each use of a slot has
// a separate reply subject: while two servers both act as the leader, a record is
// answered twice, refused by the one and stored by the other, in any order. An acknowledgement
// decides whether a tool runs, so the subjects have a random part: only the server learns them.
type publisher struct {
	nc     *nats.Conn
	inbox  string // with the dot
	status chan nats.Status
	done   chan struct{}

	mu     sync.Mutex
	closed bool
	slots  []*slot
	free   []*slot
	checks int // so far
}

// slot is the subscription and the message of one record at a time.
type slot struct {
	sub     *nats.Subscription
	inbox   string         // with the dot; the rest distinguishes uses
	answers chan *nats.Msg // nil: err ends the wait
	uses    uint64
	msg     nats.Msg // nats.go copies it when it is published, so that each use fills it again
	values  [idempotency.MetaHeaders + 1]string

	// Guarded by publisher.mu, err as long as the slot is open.
	open  bool
	ctx   context.Context //nolint:containedctx // of the record on its way
	since int             // check in which it began
	err   error
}

// set sets the value of header number i, or omits the header when it is "". The entries
// stay in the map from one record to the next.
func (s *slot) set(i int, name, value string) {
	switch {
	case value == "" && s.values[i] != "":
		delete(s.msg.Header, name)
	case value != "" && s.values[i] == "":
		s.msg.Header[name] = s.values[i : i+1 : i+1]
	}
	s.values[i] = value
}

func newPublisher(nc *nats.Conn) (*publisher, error) {
	p := &publisher{nc: nc, inbox: subjects.NewInbox(nc.Opts.InboxPrefix) + ".", done: make(chan struct{})}
	first, err := p.newSlot() // fails now if the connection is closed
	if err != nil {
		return nil, err
	}
	p.free = append(p.free, first)
	p.status = nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	go p.watch()
	return p, nil
}

func (p *publisher) watch() {
	tick := time.NewTicker(checkPending)
	defer tick.Stop()
	for {
		select {
		case _, ok := <-p.status:
			p.failAll(errDisconnected)
			if !ok {
				return
			}
		case <-tick.C:
			p.endLate()
		case <-p.done:
			return
		}
	}
}

func (p *publisher) close() {
	p.mu.Lock()
	closed, slots := p.closed, p.slots
	p.closed = true
	p.mu.Unlock()
	if closed {
		return
	}
	close(p.done)
	p.nc.RemoveStatusListener(p.status)
	for _, s := range slots {
		_ = s.sub.Unsubscribe() // fails only on a closed connection
	}
	p.failAll(errClosed)
}

// create publishes a record on a subject whose last message has to have a sequence, 0 for none.
func (p *publisher) create(ctx context.Context, subject string, last uint64, meta *idempotency.Meta, data []byte) (pubAck, error) {
	if ctx.Err() != nil {
		return pubAck{}, context.Cause(ctx)
	}
	s, err := p.acquire(ctx)
	if err != nil {
		return pubAck{}, err
	}
	s.msg.Subject, s.msg.Data = subject, data
	s.set(idempotency.MetaHeaders, nats.ExpectedLastSubjSeqHdr, strconv.FormatUint(last, 10))
	meta.Headers(s.set)
	var ack pubAck
	if err = p.nc.PublishMsg(&s.msg); err != nil {
		err = fmt.Errorf("not sent: %w", err)
	} else {
		ack, err = s.answer()
	}
	p.release(s)
	return ack, err
}

// answer waits for the acknowledgement of the record that was published.
func (s *slot) answer() (pubAck, error) {
	for {
		m := <-s.answers
		if m == nil {
			return pubAck{}, s.err
		}
		if m.Subject != s.msg.Reply {
			continue // of a use before
		}
		return parseAck(m)
	}
}

func (p *publisher) acquire(ctx context.Context) (*slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	var s *slot
	if n := len(p.free); n > 0 {
		s = p.free[n-1]
		p.free = p.free[:n-1]
	} else {
		var err error
		if s, err = p.newSlot(); err != nil {
			return nil, err
		}
	}
	s.open, s.ctx, s.since, s.err = true, ctx, p.checks, nil
	return s, nil
}

func (p *publisher) newSlot() (*slot, error) {
	const late = 8 // answers to earlier uses that arrive after all; one more is dropped, as if it were lost
	s := &slot{inbox: p.inbox + strconv.Itoa(len(p.slots)) + ".", answers: make(chan *nats.Msg, late)}
	s.msg.Header = nats.Header{}
	s.renew()
	var err error
	if s.sub, err = p.nc.ChanSubscribe(s.inbox+"*", s.answers); err != nil {
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	p.slots = append(p.slots, s)
	return s, nil
}

// renew changes the reply subject, so that a late response to the last record is dropped.
func (s *slot) renew() {
	s.uses++
	s.msg.Reply = s.inbox + strconv.FormatUint(s.uses, 36)
}

// release makes room for the next record.
func (p *publisher) release(s *slot) {
	s.msg.Data = nil
	s.renew()
	p.mu.Lock()
	defer p.mu.Unlock()
	s.open, s.ctx = false, nil
	for len(s.answers) > 0 {
		<-s.answers
	}
	p.free = append(p.free, s)
}

// endLate ends the creates that have lasted too long, and those whose context has ended.
func (p *publisher) endLate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks++
	for _, s := range p.slots {
		switch {
		case !s.open:
		case s.ctx.Err() != nil:
			s.fail(context.Cause(s.ctx))
		case p.checks-s.since > int(ackTimeout/checkPending):
			s.fail(errAckTimeout)
		}
	}
}

func (p *publisher) failAll(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.slots {
		if s.open {
			s.fail(err)
		}
	}
}

// fail ends the wait of a slot. If the channel is full, the next check repeats it.
func (s *slot) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	select {
	case s.answers <- nil:
	default:
	}
}

// parseAck reads {"stream":"…","seq":12} by hand and anything else as JSON. An acknowledgement with neither a sequence nor an
// error code leaves the outcome unknown.
func parseAck(m *nats.Msg) (pubAck, error) {
	if len(m.Data) == 0 {
		if m.Header.Get("Status") == "503" {
			return pubAck{}, nats.ErrNoResponders
		}
		return pubAck{}, errors.New("an empty acknowledgement")
	}
	if !bytes.Contains(m.Data, []byte(`"error"`)) {
		if _, rest, ok := bytes.Cut(m.Data, []byte(`"seq":`)); ok {
			end := 0
			for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
				end++
			}
			whole := end < len(rest) && (rest[end] == ',' || rest[end] == '}')
			if seq, err := strconv.ParseUint(string(rest[:end]), 10, 64); err == nil && seq > 0 && whole {
				return pubAck{seq: seq}, nil
			}
		}
	}
	var full struct {
		Seq   uint64 `json:"seq"`
		Error *struct {
			Code        jetstream.ErrorCode `json:"err_code"`
			Description string              `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &full); err != nil {
		return pubAck{}, fmt.Errorf("an acknowledgement that is not valid JSON: %w", err)
	}
	if full.Error == nil && full.Seq > 0 {
		return pubAck{seq: full.Seq}, nil
	}
	if full.Error == nil || full.Error.Code == 0 {
		return pubAck{}, errors.New("an acknowledgement without sequence and error code")
	}
	ack := pubAck{code: full.Error.Code, text: full.Error.Description}
	if ack.code == jetstream.JSErrCodeStreamWrongLastSequence {
		if _, number, ok := strings.Cut(ack.text, ": "); ok {
			ack.seq, _ = strconv.ParseUint(number, 10, 64)
		}
	}
	return ack, nil
}
