package kvstore

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

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
func (s *Store) ask(ctx context.Context, subject string, req, resp any) error {
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

func (s *Store) read(ctx context.Context, req getRequest) (idempotency.Record, error) {
	var resp getResponse
	if err := s.ask(ctx, s.get, req, &resp); err != nil {
		return idempotency.Record{}, err
	}
	if e := resp.Error; e != nil {
		if e.Code == errCodeNoMessage {
			return idempotency.Record{}, idempotency.ErrNotFound
		}
		return idempotency.Record{}, fmt.Errorf("journal: read from %s: server error %d: %s", s.space.TurnsStream(), e.Code, e.Description)
	}
	m := resp.Message
	key, _ := s.space.JournalKeyOf(m.Subject)
	r := idempotency.Record{Key: key, Data: m.Data, Seq: m.Seq, Time: m.Time}
	header, err := parseHeader(m.Header)
	if err == nil {
		r.Meta, err = idempotency.ParseMeta(header.Get)
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
	if v := mime.Get(idempotency.HeaderTrace); v != "" {
		h[idempotency.HeaderTrace] = []string{v}
	}
	return h, nil
}

// At implements [idempotency.Store].
func (s *Store) At(ctx context.Context, seq uint64) (idempotency.Record, error) {
	return s.read(ctx, getRequest{Seq: seq})
}

// Last implements [idempotency.Store]. Of a filter with wildcards it returns the last record that matches.
func (s *Store) Last(ctx context.Context, key string) (idempotency.Record, error) {
	return s.read(ctx, getRequest{Last: s.space.JournalSubject(key)})
}

// Next returns the first record from sequence `from` on whose key matches the filter, as the
// leader knows it, or ErrNotFound.
func (s *Store) Next(ctx context.Context, filter string, from uint64) (idempotency.Record, error) {
	return s.read(ctx, getRequest{Seq: max(from, 1), Next: s.space.JournalSubject(filter)})
}

// maxScan bounds how many records of one call are read: a turn has a handful, a call with
// many questions and steps some hundreds.
const maxScan = 10_000

// Scan implements [idempotency.Store]. It asks for the names of the call's records, which the server
// keeps in an index, and reads each by its name: looking for "the next one" until there is
// none would search the journal to its end.
func (s *Store) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	for range maxScans {
		found, complete, err := s.scan(ctx, key, known)
		if err != nil || complete {
			return found, err
		}
		known = found
	}
	return nil, fmt.Errorf("journal: read %s: records that are listed are not found: %w", key, idempotency.ErrStale)
}

// names returns the subjects of the journal that match a filter, as the leader knows them,
// and the first sequence of the journal.
func (s *Store) names(ctx context.Context, filter string) (names map[string]uint64, first uint64, err error) {
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
		return nil, 0, fmt.Errorf("journal: %s has over %d records: %w", filter, maxScan, idempotency.ErrTooMany)
	}
	return info.State.Subjects, info.State.First, nil
}

// maxReads is how many records are read at the same time.
const maxReads = 16

// LastOf implements [idempotency.Store].
func (s *Store) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	found := make([]*idempotency.Record, len(keys))
	var reads errgroup.Group
	reads.SetLimit(maxReads)
	for n, key := range keys {
		reads.Go(func() error {
			r, err := s.Last(ctx, key)
			switch {
			case err == nil:
				found[n] = &r
			case errors.Is(err, idempotency.ErrNotFound):
				err = nil
			}
			return err
		})
	}
	return found, reads.Wait() //nolint:wrapcheck // the error of the read
}

// maxScans bounds how often the records of a turn are listed because one that was listed is gone:
// it has just expired, or a server that is no longer the leader does not have it.
const maxScans = 3

// scan is one try of Scan. It reports whether all records that were listed are found.
func (s *Store) scan(ctx context.Context, key subjects.Key, known []idempotency.Record) (found []idempotency.Record, complete bool, err error) {
	names, _, err := s.names(ctx, key.Records())
	if err != nil {
		return nil, false, err
	}
	found = make([]idempotency.Record, 0, len(names))
	for _, r := range known {
		subject := s.space.JournalSubject(r.Key)
		if _, there := names[subject]; there && r.Meta.Secret == "" && r.Err == nil { // a secret is erased one day
			found = append(found, r)
			delete(names, subject)
		}
	}
	unread := make([]string, 0, len(names))
	for name := range names {
		if key, ok := s.space.JournalKeyOf(name); ok {
			unread = append(unread, key)
		}
	}
	read, err := s.LastOf(ctx, unread)
	if err != nil {
		return nil, false, err
	}
	complete = true
	for _, r := range read {
		if complete = complete && r != nil; r != nil {
			found = append(found, *r)
		}
	}
	slices.SortFunc(found, func(a, b idempotency.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return found, complete, nil
}

// Names returns the names of the records that match a filter, as the leader knows them, in the
// order of the names. It reads none of the records: the server keeps their names in an index. It
// fails with [idempotency.ErrTooMany] beyond 10,000 of them.
func (s *Store) Names(ctx context.Context, filter string) ([]subjects.Record, error) {
	names, _, err := s.names(ctx, filter)
	if err != nil {
		return nil, err
	}
	found := make([]subjects.Record, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		key, _ := s.space.JournalKeyOf(name)
		if r, ok := subjects.ParseKey(key); ok {
			found = append(found, r)
		}
	}
	return found, nil
}
