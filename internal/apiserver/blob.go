package apiserver

// The verb blob: chunks of the object store, read from any replica, and from the leader where a replica lags.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// blobReply is the reply to [api.VerbBlob].
func blobReply(reply string, p *store.Piece) *nats.Msg {
	m := &nats.Msg{Subject: reply, Data: p.Data, Header: nats.Header{api.HeaderBlobSize: {strconv.FormatUint(p.Size, 10)}}}
	if p.Next > 0 {
		m.Header.Set(api.HeaderBlobNext, strconv.FormatUint(p.Next, 10))
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
	chunks, err := store.OpenChunks(ctx, s.js, s.Space.BlobsBucket())
	if err != nil {
		return nil, err
	}
	p, err := chunks.Piece(ctx, q.Blob, q.From, min(pageBytes, s.most))
	switch {
	case errors.Is(err, store.ErrBlobGone):
		return nil, fmt.Errorf("%w: blob %.300q is not stored, or its retention is over", errNotFound, q.Blob)
	case err != nil:
		return nil, fmt.Errorf("read blob %.300q: %w", q.Blob, err)
	}
	return p, nil
}

// isPublicBlob reports whether a name belongs to a blob of a public event of a tenant. The
// names of blobs are keys of records and the beginning of a hash; names of dead letters are not.
func isPublicBlob(app, name string) bool {
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return false
	}
	r, ok := subjects.ParseKey("e." + name[:at])
	return ok && r.App == app && slices.Contains([]string{
		events.KindToolCall, events.KindToolResponse, events.RecordAsk, events.RecordProgram, events.RecordResult, events.RecordText, events.RecordStructuredOutput,
	}, r.Kind)
}
