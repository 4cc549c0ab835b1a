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
// subject with an expected last sequence, 0 for a key that is free, and reads through the stream's
// leader, never through a replica that may lag.
type KV struct {
	nc     *nats.Conn
	space  subjects.Space
	pub    *publisher
	get    string // API subject of a leader read
	info   string // API subject of the stream's state
	bucket *bucket
}

// NewKV returns the store in the bucket of space. The bucket must exist (turnctl provision
// makes it). The connection should be made with ReconnectBufSize(-1), so that no record is
// sent long after it was given up. Close ends its subscriptions.
func NewKV(nc *nats.Conn, space subjects.Space) (*KV, error) {
	pub, err := newPublisher(nc)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &KV{
		nc: nc, space: space, pub: pub, bucket: newBucket(space.TurnsBucket()),
		get: "$JS.API.STREAM.MSG.GET." + space.TurnsStream(), info: "$JS.API.STREAM.INFO." + space.TurnsStream(),
	}, nil
}

// Close releases the subscriptions. Creates in flight end as unknown.
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
	if err := s.bucket.Err(); err != nil {
		return 0, err
	}
	before := s.bucket.last.Load()
	ack, err := s.pub.create(ctx, s.space.JournalSubject(r.Key), r.Seq, &r.Meta, r.Data)
	switch {
	case errors.Is(err, nats.ErrNoResponders) && s.checkSometimes(ctx) != nil:
		return 0, s.bucket.Err()
	case err != nil:
		return 0, fmt.Errorf("journal: create %s: %w", r.Key, err)
	case ack.code == 0:
		return ack.seq, s.stored(ctx, before, ack.seq)
	case ack.code == errCodeWrongSequence && (ack.seq > 0 || r.Seq > 0):
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

// apiError is a refusal of the JetStream API.
type apiError struct {
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

type getResponse struct {
	Error   *apiError `json:"error"`
	Message struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Header  []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
}

// ask makes one request to the JetStream API of the journal's stream.
func (s *KV) ask(ctx context.Context, subject string, req, resp any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("journal: encode a read: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	msg, err := s.nc.RequestWithContext(ctx, subject, body)
	if err == nil {
		err = json.Unmarshal(msg.Data, resp)
	}
	if err != nil {
		return fmt.Errorf("journal: read from %s: %w", s.space.TurnsStream(), err)
	}
	return nil
}

func (s *KV) read(ctx context.Context, req getRequest) (Record, error) {
	var resp getResponse
	if err := s.ask(ctx, s.get, req, &resp); err != nil {
		return Record{}, err
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

// Last implements [Store]. Of a filter with wildcards it returns the last record that matches.
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

// Scan implements [Store]. It asks for the names of the call's records, which the server
// keeps in an index, and reads each by its name: looking for "the next one" until there is
// none would search the journal to its end.
func (s *KV) Scan(ctx context.Context, key subjects.Key) ([]Record, error) {
	return s.Rescan(ctx, key, nil)
}

// names returns the subjects of the journal that match a filter, as the leader knows them,
// and the first sequence of the journal.
func (s *KV) names(ctx context.Context, filter string) (names map[string]uint64, first uint64, err error) {
	var info struct {
		Error *apiError `json:"error"`
		State struct {
			First    uint64            `json:"first_seq"`
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	req := map[string]string{"subjects_filter": s.space.JournalSubject(filter)}
	if err := s.ask(ctx, s.info, req, &info); err != nil {
		return nil, 0, err
	}
	switch {
	case info.Error != nil:
		return nil, 0, fmt.Errorf("journal: names of %s: server error %d: %s", filter, info.Error.Code, info.Error.Description)
	case len(info.State.Subjects) > maxScan:
		return nil, 0, fmt.Errorf("journal: %s has over %d records: %w", filter, maxScan, ErrTooMany)
	}
	return info.State.Subjects, info.State.First, nil
}
