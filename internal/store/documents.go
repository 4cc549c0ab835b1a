package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// Documents is where context variables are stored: a document for each chat, replaced by compare-and-set.
type Documents interface {
	// Read returns the document under a key and its revision, as the leader knows them. It is nil
	// when there is none (any more).
	Read(ctx context.Context, key string) (data []byte, revision uint64, err error)
	// Write replaces the document of a revision and returns the new revision. With
	// [jetstream.ErrKeyExists] another revision is there.
	Write(ctx context.Context, key string, data []byte, revision uint64) (uint64, error)
	// Name is the bucket, for messages.
	Name() string
	// Limit is the largest document in bytes.
	Limit() int
}

// documentBucket is the bucket of context variables.
type documentBucket struct {
	nc *nats.Conn
	kv jetstream.KeyValue
}

// OpenDocuments opens the bucket of context variables of space. The bucket must exist.
func OpenDocuments(ctx context.Context, js jetstream.JetStream, space subjects.Space) (Documents, error) {
	kv, err := js.KeyValue(ctx, space.ContextBucket())
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", space.ContextBucket(), err)
	}
	return &documentBucket{js.Conn(), kv}, nil
}

// Read implements [Documents]. A turn that follows another must see what that one has changed, so
// the leader is asked: a replica may lag.
func (b *documentBucket) Read(ctx context.Context, key string) ([]byte, uint64, error) {
	m, err := jsapi.Read(ctx, b.nc, "KV_"+b.kv.Bucket(), jsapi.Get{Last: "$KV." + b.kv.Bucket() + "." + key})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	case deleted(m):
		return nil, m.Seq, nil
	case m.Data == nil:
		return []byte{}, m.Seq, nil
	}
	return m.Data, m.Seq, nil
}

// Write implements [Documents].
func (b *documentBucket) Write(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	return b.kv.Update(ctx, key, data, revision) //nolint:wrapcheck // the caller names the document
}

// Name implements [Documents].
func (b *documentBucket) Name() string { return b.kv.Bucket() }

// Limit implements [Documents].
func (b *documentBucket) Limit() int { return maxData(b.nc) }

// deleted reports whether a message marks the end of a key of a bucket.
func deleted(m *jsapi.Message) bool {
	return bytes.Contains(m.RawHeader, []byte("KV-Operation:")) || bytes.Contains(m.RawHeader, []byte("Nats-Marker-Reason:"))
}
