package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/internal/jsapi"
)

// A blob is written as new chunks, then as the entry that refers to them, and the chunks of the earlier content are
// removed last. So a name refers to a complete content at any time.

// chunk is how much of a blob a message holds at most, in bytes.
const chunk = 128 << 10

// write stores data under a name. What the name holds is readable until all of the new content is stored, and after that
// is refused. The Put of the client sends the entry of the name along with the chunks, so that a
// chunk that is refused or lost leaves a name without content.
func (b *Blobs) write(ctx context.Context, name string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	err := b.writeOver(ctx, name, data)
	if err == nil {
		return nil
	}
	if no := Refused(err, b.bucket, "make room in it, or raise its limit with `turnctl provision --blobs-max-bytes`"); no != nil {
		err = no
	}
	return fmt.Errorf("store blob %s of %d bytes: %w", name, len(data), err)
}

func (b *Blobs) writeOver(ctx context.Context, name string, data []byte) error {
	before, err := b.store.GetInfo(ctx, name)
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("look it up: %w", err)
	}
	content := rand.Text()
	size := min(chunk, b.MaxMessage())
	chunks := slices.Collect(slices.Chunk(data, size))
	if err := b.writeChunks(ctx, content, chunks); err != nil {
		b.forget(ctx, content)
		return err
	}
	sum := sha256.New()
	sum.Write(data)
	err = b.writeEntry(ctx, jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: uint32(size)}},
		Bucket:     b.bucket, NUID: content, Size: uint64(len(data)), Chunks: uint32(len(chunks)), Digest: jetstream.GetObjectDigestValue(sum),
	})
	var answer *jetstream.APIError
	switch {
	case errors.As(err, &answer):
		b.forget(ctx, content)
	case err == nil && before != nil:
		b.forget(ctx, before.NUID)
	}
	return err // of unknown outcome: the name may refer to either content
}

// writeChunks stores the chunks of a content in their order: none is sent again by itself, which would
// change it. It waits for the answers to all that it has sent, so that nothing is stored after a purge.
func (b *Blobs) writeChunks(ctx context.Context, content string, chunks [][]byte) error {
	stored := make([]jetstream.PubAckFuture, len(chunks))
	for i, data := range chunks {
		var err error
		if stored[i], err = b.js.PublishMsgAsync(&nats.Msg{Subject: chunksOf(b.bucket, content), Data: data}, jetstream.WithRetryAttempts(0)); err != nil {
			return fmt.Errorf("send chunk %d: %w", i, err)
		}
	}
	var failed error
	for i := range stored {
		select {
		case <-stored[i].Ok():
		case err := <-stored[i].Err():
			if failed == nil {
				failed = fmt.Errorf("store chunk %d: %w", i, err)
			}
		case <-ctx.Done():
			return fmt.Errorf("store chunk %d: %w", i, ctx.Err())
		}
	}
	return failed
}

// writeEntry makes a name refer to a content.
func (b *Blobs) writeEntry(ctx context.Context, info jetstream.ObjectInfo) error {
	data, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("encode its entry: %w", err)
	}
	m := &nats.Msg{Subject: entryOf(b.bucket, info.Name), Data: data, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}}
	if _, err := b.js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("store its entry: %w", err)
	}
	return nil
}

// forget removes a content that no name has. What is left of it expires.
func (b *Blobs) forget(ctx context.Context, content string) {
	_ = jsapi.Purge(ctx, b.nc, "OBJ_"+b.bucket, chunksOf(b.bucket, content))
}
