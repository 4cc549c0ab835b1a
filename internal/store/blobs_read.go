package store

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// Blobs are read from any replica first. Only what the replica lacks, or has with another hash, is read from the leader
// chunk by chunk, and only the leader decides that a blob is gone.

// Read returns a blob with a name and a hash in hex. It fails with [ErrBlobGone] only if the leader lacks it.
func (b *Blobs) Read(ctx context.Context, name, sum string) ([]byte, error) {
	return b.get(ctx, name, sum)
}

// get reads a blob and checks its hash. It is read from any replica, which may lag behind the write of
// a moment ago: that the blob is not there, or damaged, is decided by the leader of the bucket alone.
func (b *Blobs) get(ctx context.Context, name, sum string) ([]byte, error) {
	data, err := b.fromReplica(ctx, name)
	if err == nil && Hash(data) == sum {
		return data, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("read blob %s: %w", name, errors.Join(err, context.Cause(ctx)))
	}
	switch data, err = b.fromLeader(ctx, name); {
	case err != nil:
		return nil, fmt.Errorf("read blob %s: %w", name, err)
	case Hash(data) != sum:
		return nil, fmt.Errorf("%w: blob %s has another hash", ErrBlobGone, name)
	}
	return data, nil
}

func (b *Blobs) fromReplica(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	return b.store.GetBytes(ctx, name) //nolint:wrapcheck // the caller names the blob
}

// fromLeader reads a blob from the leader, chunk by chunk.
func (b *Blobs) fromLeader(ctx context.Context, name string) ([]byte, error) {
	chunks := Chunks{b.bucket, func(ctx context.Context, get jsapi.Get) (*jsapi.Message, error) {
		return jsapi.Read(ctx, b.nc, "OBJ_"+b.bucket, get)
	}}
	whole, err := chunks.Piece(ctx, name, 0, math.MaxInt)
	if err != nil {
		return nil, err
	}
	return whole.Data, nil
}

// ErrBlobGone is the error of a payload that is not stored any more, or is not what its record names: the arguments of
// a claim, for example.
var ErrBlobGone = errors.New("the stored arguments are gone or damaged")

// Object implements [BlobStore].
func (b *Blobs) Object(ctx context.Context, key subjects.Key, kind string, stored any) (map[string]any, error) {
	value, err := b.Value(ctx, key, kind, stored)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: they are not a JSON object", ErrBlobGone)
	}
	return object, nil
}

// Value implements [BlobStore]. Data that merely looks like a blob is data.
func (b *Blobs) Value(ctx context.Context, key subjects.Key, kind string, stored any) (value any, err error) {
	object, ok := stored.(map[string]any)
	if !ok {
		return stored, nil
	}
	name, _ := object["$blob"].(string)
	sum, _ := object["sha256"].(string)
	if len(object) != 3 || len(sum) != 64 || name != blobName(key.String()+"."+kind, sum) {
		return object, nil
	}
	err = b.Retries.Until(ctx, b.bucket, name, func() error {
		data, err := b.get(ctx, name, sum)
		if err != nil {
			return err
		}
		if value, err = events.Decode(data); err != nil {
			return fmt.Errorf("%w: blob %s is not JSON: %w", ErrBlobGone, name, err)
		}
		return nil
	})
	return value, err
}
