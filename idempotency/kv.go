package idempotency

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/subjects"
)

// requestTimeout bounds one read from the leader.
const requestTimeout = 5 * time.Second

// Error codes of the JetStream API.
const (
	errCodeNoMessage     = 10037
	errCodeTooLarge      = 10054
	errCodeWrongSequence = 10071
	errCodeInFlight      = 10164
)

// KV is the [Store] in a JetStream KV bucket. It creates records by publishing to the key's
// subject with an expected last sequence of 0, and reads through the stream's leader, never
// through a replica that may lag.
type KV struct {
	nc    *nats.Conn
	space subjects.Space
	pub   *publisher
	get   string // API subject of a leader read
}

// NewKV returns the store in the bucket of space. The bucket must exist (turnctl provision
// makes it). The connection should be made with ReconnectBufSize(-1), so that no record is
// sent long after it was given up. Close stops its subscription.
func NewKV(nc *nats.Conn, space subjects.Space) (*KV, error) {
	pub, err := newPublisher(nc)
	if err != nil {
		return nil, err
	}
	return &KV{nc: nc, space: space, pub: pub, get: "$JS.API.STREAM.MSG.GET." + space.TurnsStream()}, nil
}

// Close releases the subscription. Creates in flight end as unknown.
func (s *KV) Close() { s.pub.close() }

// Create implements [Store].
func (s *KV) Create(ctx context.Context, r Record) (uint64, error) {
	if failpoint.Enabled {
		return createAtFailpoint(ctx, s, r)
	}
	return s.create(ctx, r)
}

func (s *KV) create(ctx context.Context, r Record) (uint64, error) {
	if limit := s.nc.MaxPayload(); limit > 0 && int64(len(r.Data)) > limit-4096 {
		return 0, fmt.Errorf("%w: %s has %d bytes, the server takes %d", ErrRefused, r.Key, len(r.Data), limit)
	}
	ack, err := s.pub.create(ctx, s.space.JournalSubject(r.Key), &r.Meta, r.Data)
	switch {
	case err != nil:
		return 0, fmt.Errorf("journal: create %s: %w", r.Key, err)
	case ack.code == 0:
		return ack.seq, nil
	case ack.code == errCodeWrongSequence && ack.seq > 0:
		return 0, &ExistsError{Key: r.Key, Seq: ack.seq}
	case ack.code == errCodeInFlight:
		return 0, ErrUndecided
	case ack.code == errCodeTooLarge:
		return 0, fmt.Errorf("%w: %s: %s", ErrRefused, r.Key, ack.text)
	}
	return 0, fmt.Errorf("journal: create %s: server error %d: %s", r.Key, ack.code, ack.text)
}

type getRequest struct {
	Seq  uint64 `json:"seq,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
}

type getResponse struct {
	Error *struct {
		Code        int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
	Message struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
}

func (s *KV) read(ctx context.Context, req getRequest) (Record, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return Record{}, fmt.Errorf("journal: encode a read: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	msg, err := s.nc.RequestWithContext(ctx, s.get, body)
	if err != nil {
		return Record{}, fmt.Errorf("journal: read from %s: %w", s.space.TurnsStream(), err)
	}
	var resp getResponse
	if err := json.Unmarshal(msg.Data, &resp); err != nil {
		return Record{}, fmt.Errorf("journal: read from %s: %w", s.space.TurnsStream(), err)
	}
	if e := resp.Error; e != nil {
		if e.Code == errCodeNoMessage {
			return Record{}, ErrNotFound
		}
		return Record{}, fmt.Errorf("journal: read from %s: server error %d: %s", s.space.TurnsStream(), e.Code, e.Description)
	}
	m := resp.Message
	key, _ := s.space.JournalKeyOf(m.Subject)
	r := Record{Key: key, Data: m.Data, Seq: m.Seq, Time: m.Time}
	header, err := parseHeader(m.Header)
	if err == nil {
		r.Meta, err = parseMeta(header.Get)
	}
	r.Err = err
	return r, nil
}

// parseHeader reads a NATS header block as the stored-message API gives it.
func parseHeader(raw []byte) (nats.Header, error) {
	if len(raw) == 0 {
		return nats.Header{}, nil
	}
	_, rest, ok := bytes.Cut(raw, []byte("\r\n"))
	if !ok {
		return nil, errors.New("journal: a record with a damaged header block")
	}
	mime, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(rest))).ReadMIMEHeader()
	if err != nil {
		return nil, fmt.Errorf("journal: a record with a damaged header block: %w", err)
	}
	h := make(nats.Header, len(mime))
	maps.Copy(h, mime)
	// MIME parsing writes names in canonical form; the trace header is lower case on the wire.
	if v := mime.Get(HeaderTrace); v != "" {
		h[HeaderTrace] = []string{v}
	}
	return h, nil
}

// At implements [Store].
func (s *KV) At(ctx context.Context, seq uint64) (Record, error) {
	return s.read(ctx, getRequest{Seq: seq})
}

// Last implements [Store].
func (s *KV) Last(ctx context.Context, key string) (Record, error) {
	return s.read(ctx, getRequest{Last: s.space.JournalSubject(key)})
}

// Next returns the first record from sequence `from` on whose key matches the filter, as the
// leader knows it, or ErrNotFound.
func (s *KV) Next(ctx context.Context, filter string, from uint64) (Record, error) {
	return s.read(ctx, getRequest{Seq: max(from, 1), Next: s.space.JournalSubject(filter)})
}

// maxScan bounds how many records of one call are read: a turn has a handful, a call with
// many questions and steps some hundreds.
const maxScan = 10_000

// Scan implements [Store].
func (s *KV) Scan(ctx context.Context, key subjects.Key) ([]Record, error) {
	var found []Record
	for _, filter := range []string{key.PublicRecords(), key.PrivateRecords()} {
		for next := uint64(0); ; {
			r, err := s.Next(ctx, filter, next)
			if errors.Is(err, ErrNotFound) {
				break
			}
			if err != nil {
				return nil, err
			}
			if len(found) >= maxScan {
				return nil, fmt.Errorf("journal: %s has over %d records", key, maxScan)
			}
			found = append(found, r)
			next = r.Seq + 1
		}
	}
	slices.SortFunc(found, func(a, b Record) int { return int(int64(a.Seq) - int64(b.Seq)) })
	return found, nil
}
