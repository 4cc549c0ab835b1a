package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// This file decides when a payload becomes a blob and under which name. A name contains the record and the hash of the
// content, so storing the same payload again is harmless; one that may expire before its record is stored again.
// blobs_write.go has the writes, blobs_read.go the reads.

// InlineLimit is the largest payload in bytes that a record holds itself; a larger one is
// stored as a blob before the record that names it.
const InlineLimit = 256 << 10

// maxData returns how many bytes of data a message can hold besides its subject and headers.
func maxData(nc *nats.Conn) int {
	const headroom = 8 << 10
	return int(nc.MaxPayload()) - headroom
}

// BlobStore holds payloads that are too large for a record. [Blobs] is the real one.
type BlobStore interface {
	// Inline reports whether a payload of so many bytes stays in its record.
	Inline(size int) bool
	// Shrink stores the JSON of value, and returns the [events.Blob] that a record holds instead. It tries until ctx ends, except for what the bucket refuses:
	// [idempotency.ErrRefused].
	Shrink(ctx context.Context, key subjects.Key, kind string, value any, data []byte) (any, error)
	// Object returns an object that a record of a kind holds under key, out of its blob if it is
	// in one. Only the blob that Shrink has made for that record is read.
	Object(ctx context.Context, key subjects.Key, kind string, stored any) (map[string]any, error)
	// Value is Object for any JSON value.
	Value(ctx context.Context, key subjects.Key, kind string, stored any) (any, error)
}

// Blobs is the object store of payloads that are too large for a record.
type Blobs struct {
	Retries Retries // to be set before use, if at all

	nc     *nats.Conn
	js     jetstream.JetStream
	store  jetstream.ObjectStore
	bucket string
}

// NewBlobs opens the blobs of space. The bucket must exist.
func NewBlobs(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, space subjects.Space) (*Blobs, error) {
	store, err := js.ObjectStore(ctx, space.BlobsBucket())
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w", space.BlobsBucket(), err)
	}
	writes, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(jsapi.Timeout)) // what is never answered is forgotten
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w", space.BlobsBucket(), err)
	}
	return &Blobs{nc: nc, js: writes, store: store, bucket: space.BlobsBucket()}, nil
}

// MaxMessage is how many bytes of data a message can hold.
func (b *Blobs) MaxMessage() int { return maxData(b.nc) }

// Inline implements [BlobStore].
func (b *Blobs) Inline(size int) bool { return size <= min(InlineLimit, b.MaxMessage()/2) }

// Shrink implements [BlobStore].
func (b *Blobs) Shrink(ctx context.Context, key subjects.Key, kind string, _ any, data []byte) (any, error) {
	var blob events.Blob
	err := b.Retries.Until(ctx, b.bucket, key.String(), func() (err error) {
		blob, err = b.put(ctx, key.String()+"."+kind, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return blob, nil
}

// put stores data under a name that its content completes, so that a second try is the same
// blob. One that was just stored is not written again. An older one may belong to an earlier turn of the key, and
// would expire before the record that is about to name it: it is stored again.
func (b *Blobs) put(ctx context.Context, prefix string, data []byte) (events.Blob, error) {
	blob := events.Blob{SHA256: Hash(data), Size: len(data)}
	blob.Blob = blobName(prefix, blob.SHA256)
	if _, young := b.has(ctx, blob); young {
		return blob, nil
	}
	if err := b.renew(ctx, blob, data); err != nil {
		return events.Blob{}, err
	}
	return blob, nil
}

// Replace stores data under a name whatever it holds, and reports whether it held something else.
func (b *Blobs) Replace(ctx context.Context, name string, data []byte) (replaced bool, err error) {
	blob := events.Blob{Blob: name, SHA256: Hash(data), Size: len(data)}
	there, young := b.has(ctx, blob)
	if young {
		return false, nil
	}
	look, cancel := context.WithTimeout(ctx, hasTimeout)
	defer cancel()
	_, errOld := b.store.GetInfo(look, name)
	err = b.renew(ctx, blob, data)
	return err == nil && errOld == nil && !there, err
}

// renew stores a blob, again if it is there. Where that is refused, as in a full bucket, what is there has to do:
// the record of a claim may name it.
func (b *Blobs) renew(ctx context.Context, blob events.Blob, data []byte) error {
	err := b.write(ctx, blob.Blob, data)
	if errors.Is(err, idempotency.ErrRefused) {
		if _, errGet := b.get(ctx, blob.Blob, blob.SHA256); errGet == nil {
			return nil
		}
	}
	return err
}

// hasTimeout bounds reading whether a blob is there.
const hasTimeout = 2 * time.Second

// youngPart of its time to live is how old a blob may be to be left alone: an hour of ten days, which is
// far less than blobs outlive records.
const youngPart = 240

// has reports whether a blob is known to be there, whole, and whether it is so young that it outlives
// every record that is stored now. Its age is measured on the clock of the server. A replica may not
// know it yet: then it is stored once more.
func (b *Blobs) has(ctx context.Context, blob events.Blob) (there, young bool) {
	ctx, cancel := context.WithTimeout(ctx, hasTimeout)
	defer cancel()
	info, err := b.store.GetInfo(ctx, blob.Blob)
	if err != nil {
		return false, false
	}
	if data, errRead := b.fromReplica(ctx, blob.Blob); errRead != nil || Hash(data) != blob.SHA256 {
		return false, false
	}
	status, err := b.store.Status(ctx)
	if err != nil {
		return true, false
	}
	bucket, ok := status.(*jetstream.ObjectBucketStatus)
	if !ok {
		return true, false
	}
	ttl, age := status.TTL(), bucket.StreamInfo().TimeStamp.Sub(info.ModTime)
	return true, ttl <= 0 || age < ttl/youngPart
}

func blobName(prefix, sum string) string { return prefix + "." + sum[:16] }

// Hash is the SHA-256 of data in hex.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
