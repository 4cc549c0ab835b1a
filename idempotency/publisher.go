package idempotency

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
)

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
	seq  uint64 // sequence stored, or the one in the way
	code int    // 0 when stored
	text string
}

// publisher publishes to JetStream and waits for acknowledgements. It costs a third of
// nats.go's own synchronous publish: one wildcard inbox for all, a table of reusable slots,
// and acknowledgements parsed by hand. A disconnect fails every open slot as unknown.
type publisher struct {
	nc     *nats.Conn
	inbox  string // with the dot
	sub    *nats.Subscription
	status chan nats.Status
	done   chan struct{}

	mu     sync.Mutex
	closed bool
	slots  []*slot
	free   []int
}

type slot struct {
	index  int
	turn   uint64 // grows with each use, so that a late answer finds nobody
	open   bool
	ch     chan result
	timer  *time.Timer
	msg    nats.Msg // nats.go copies it when it is published, so that each use fills it anew
	values []string // of its headers
}

// set adds a header.
func (s *slot) set(name, value string) {
	s.values = append(s.values, value)
	i := len(s.values)
	s.msg.Header[name] = s.values[i-1 : i : i]
}

type result struct {
	ack pubAck
	err error
}

func newPublisher(nc *nats.Conn) (*publisher, error) {
	p := &publisher{nc: nc, inbox: nc.NewInbox() + ".", done: make(chan struct{})}
	var err error
	if p.sub, err = nc.Subscribe(p.inbox+"*.*", p.answer); err != nil {
		return nil, fmt.Errorf("journal: subscribe to acknowledgements: %w", err)
	}
	if err := p.sub.SetPendingLimits(-1, -1); err != nil { // bounded by the open slots
		return nil, fmt.Errorf("journal: subscribe to acknowledgements: %w", err)
	}
	p.status = nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	go p.watch()
	return p, nil
}

func (p *publisher) watch() {
	for {
		select {
		case _, ok := <-p.status:
			p.failAll(errDisconnected)
			if !ok {
				return
			}
		case <-p.done:
			return
		}
	}
}

func (p *publisher) close() {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	p.mu.Unlock()
	if closed {
		return
	}
	close(p.done)
	p.nc.RemoveStatusListener(p.status)
	_ = p.sub.Unsubscribe() // fails only on a closed connection
	p.failAll(errClosed)
}

// create publishes a record on a subject that has to be empty.
func (p *publisher) create(ctx context.Context, subject string, meta *Meta, data []byte) (pubAck, error) {
	s, err := p.acquire()
	if err != nil {
		return pubAck{}, err
	}
	defer p.release(s)
	s.msg.Subject, s.msg.Data = subject, data
	s.set(nats.ExpectedLastSubjSeqHdr, "0")
	meta.headers(s.set)
	if err := p.nc.PublishMsg(&s.msg); err != nil {
		return pubAck{}, fmt.Errorf("not sent: %w", err)
	}
	s.timer.Reset(ackTimeout)
	defer s.timer.Stop()
	select {
	case r := <-s.ch:
		return r.ack, r.err
	case <-ctx.Done():
		return pubAck{}, context.Cause(ctx)
	case <-s.timer.C:
		return pubAck{}, errAckTimeout
	}
}

func (p *publisher) acquire() (*slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	var s *slot
	if n := len(p.free); n > 0 {
		s = p.slots[p.free[n-1]]
		p.free = p.free[:n-1]
	} else {
		s = &slot{index: len(p.slots), ch: make(chan result, 1), timer: time.NewTimer(ackTimeout)}
		s.msg.Header = nats.Header{}
		p.slots = append(p.slots, s)
	}
	s.turn++
	s.open = true
	s.msg.Reply = p.reply(s)
	return s, nil
}

// reply is the subject of the answer to this use of a slot.
func (p *publisher) reply(s *slot) string {
	const usual = 64
	b := append(make([]byte, 0, usual), p.inbox...)
	b = strconv.AppendInt(b, int64(s.index), 36)
	b = append(b, '.')
	return string(strconv.AppendUint(b, s.turn, 36))
}

func (p *publisher) release(s *slot) {
	s.msg.Data = nil
	clear(s.msg.Header)
	s.values = s.values[:0]
	p.mu.Lock()
	defer p.mu.Unlock()
	s.open = false
	select {
	case <-s.ch:
	default:
	}
	p.free = append(p.free, s.index)
}

func (p *publisher) answer(m *nats.Msg) {
	index, turn, ok := strings.Cut(m.Subject[len(p.inbox):], ".")
	if !ok {
		return
	}
	i, err1 := strconv.ParseInt(index, 36, 32)
	n, err2 := strconv.ParseUint(turn, 36, 64)
	if err1 != nil || err2 != nil {
		return
	}
	ack, err := parseAck(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i >= 0 && i < int64(len(p.slots)) && p.slots[i].open && p.slots[i].turn == n {
		deliver(p.slots[i], result{ack, err})
	}
}

func (p *publisher) failAll(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.slots {
		if s.open {
			deliver(s, result{err: err})
		}
	}
}

func deliver(s *slot, r result) {
	select {
	case s.ch <- r:
	default: // already answered
	}
}

// parseAck reads {"stream":"…","seq":12} by hand and anything else as JSON. What says neither
// where the record is stored nor why it is not leaves the outcome unknown.
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
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &full); err != nil {
		return pubAck{}, fmt.Errorf("an acknowledgement that is no JSON: %w", err)
	}
	if full.Error == nil && full.Seq > 0 {
		return pubAck{seq: full.Seq}, nil
	}
	if full.Error == nil || full.Error.Code == 0 {
		return pubAck{}, errors.New("an acknowledgement without sequence and error code")
	}
	ack := pubAck{code: full.Error.Code, text: full.Error.Description}
	if ack.code == errCodeWrongSequence {
		if _, number, ok := strings.Cut(ack.text, ": "); ok {
			ack.seq, _ = strconv.ParseUint(number, 10, 64)
		}
	}
	return ack, nil
}
