package apiserver

// The verb blob: chunks of the object store, read from any replica, and from the leader where a replica lags.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// piece is a reply to [api.VerbBlob].
type piece struct {
	data []byte
	size uint64
	next uint64
}

func (p *piece) message(reply string) *nats.Msg {
	m := &nats.Msg{Subject: reply, Data: p.data, Header: nats.Header{api.HeaderBlobSize: {strconv.FormatUint(p.size, 10)}}}
	if p.next > 0 {
		m.Header.Set(api.HeaderBlobNext, strconv.FormatUint(p.next, 10))
	}
	return m
}

// errNotFound means that what a request names does not exist.
var errNotFound = errors.New("not found")

// pageBytes bounds a reply in bytes.
const pageBytes = 512 << 10

// blob reads a piece of a blob: whole chunks of the object store, 512 KiB at most.
func (s *Server) blob(ctx context.Context, app string, body []byte) (any, error) {
	var q api.BlobRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Blob == "" {
		return nil, fmt.Errorf(`%w: want {"blob":"…","from":0}`, errBadRequest)
	}
	if !isPublicBlob(app, q.Blob) { // the same error as for blobs of other tenants, so that it reveals nothing
		return nil, fmt.Errorf("%w: this tenant has no event with blob %.300q", errNotFound, q.Blob)
	}
	stream, err := s.js.Stream(ctx, "OBJ_"+s.space.BlobsBucket())
	if err != nil {
		return nil, fmt.Errorf("open the blobs: %w", err)
	}
	info, err := s.blobInfo(ctx, stream, q.Blob)
	if err != nil {
		return nil, err
	}
	p := &piece{size: info.Size}
	chunks := "$O." + s.space.BlobsBucket() + ".C." + info.NUID
	for from, most := max(q.From, 1), min(pageBytes, s.most); ; {
		m, err := s.blobMessage(ctx, stream, from, chunks)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound) && (q.From > 0 || uint64(len(p.data)) >= info.Size):
			return p, nil
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil, fmt.Errorf("%w: blob %.300q has lost its content", errNotFound, q.Blob)
		case err != nil:
			return nil, fmt.Errorf("read blob %.300q: %w", q.Blob, err)
		case len(p.data)+len(m.Data) > most && len(p.data) > 0:
			p.next = m.Seq
			return p, nil
		}
		p.data = append(p.data, m.Data...)
		if from = m.Seq + 1; q.From == 0 && uint64(len(p.data)) >= info.Size {
			return p, nil
		}
	}
}

// blobMessage reads the first message of a subject from a sequence on, or the last one where that is 0.
// It is read from any replica; one that does not have it may lag, so the leader is asked then. Without
// the message there the error is [jetstream.ErrMsgNotFound].
func (s *Server) blobMessage(ctx context.Context, stream jetstream.Stream, from uint64, subject string) (*jsapi.Message, error) {
	var m *jetstream.RawStreamMsg
	var err error
	get := jsapi.Get{Seq: from, Next: subject}
	if from > 0 {
		m, err = stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
	} else {
		m, err = stream.GetLastMsgForSubject(ctx, subject)
		get = jsapi.Get{Last: subject}
	}
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return jsapi.Read(ctx, s.js.Conn(), "OBJ_"+s.space.BlobsBucket(), get)
	case err != nil:
		return nil, fmt.Errorf("read a blob: %w", err)
	}
	return &jsapi.Message{Seq: m.Sequence, Data: m.Data}, nil
}

// blobInfo reads the entry of a blob in the object store.
func (s *Server) blobInfo(ctx context.Context, stream jetstream.Stream, name string) (*jetstream.ObjectInfo, error) {
	m, err := s.blobMessage(ctx, stream, 0, "$O."+s.space.BlobsBucket()+".M."+base64.URLEncoding.EncodeToString([]byte(name)))
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("look up blob %.300q: %w", name, err)
	}
	var info jetstream.ObjectInfo
	if err == nil {
		if err = json.Unmarshal(m.Data, &info); err == nil && (info.NUID == "" || strings.ContainsAny(info.NUID, ".*> ")) {
			err = errors.New("it has no chunks")
		}
		if err != nil {
			return nil, fmt.Errorf("look up blob %.300q: %w", name, err)
		}
	}
	if err != nil || info.Deleted {
		return nil, fmt.Errorf("%w: blob %.300q is not stored, or its retention is over", errNotFound, name)
	}
	return &info, nil
}

// isPublicBlob reports whether a name belongs to a blob of a public event of a tenant. The
// names of blobs are keys of records and the beginning of a hash; names of dead letters are not.
func isPublicBlob(app, name string) bool {
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return false
	}
	r, ok := subjects.ParseKey("e." + name[:at])
	return ok && r.App == app && slices.Contains([]string{events.KindToolCall, events.KindToolResponse, events.RecordAsk}, r.Kind)
}
