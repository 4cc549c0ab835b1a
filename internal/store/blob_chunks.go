package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/internal/jsapi"
)

// In the stream of the object store a blob is an entry under its name, which refers to a content, and the chunks of that
// content.

// Chunks reads blobs chunk by chunk, as messages of the stream.
type Chunks struct {
	bucket string
	read   func(ctx context.Context, get jsapi.Get) (*jsapi.Message, error)
}

// OpenChunks returns a reader of the blobs in a bucket. A message is read from any replica; one that does not have it
// may lag, so the leader is asked then.
func OpenChunks(ctx context.Context, js jetstream.JetStream, bucket string) (*Chunks, error) {
	name := "OBJ_" + bucket
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", name, err)
	}
	return &Chunks{bucket, func(ctx context.Context, get jsapi.Get) (*jsapi.Message, error) {
		var m *jetstream.RawStreamMsg
		var err error
		if get.Last != "" {
			m, err = stream.GetLastMsgForSubject(ctx, get.Last)
		} else {
			m, err = stream.GetMsg(ctx, get.Seq, jetstream.WithGetMsgSubject(get.Next))
		}
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return jsapi.Read(ctx, js.Conn(), name, get)
		case err != nil:
			return nil, fmt.Errorf("read from stream %s: %w", name, err)
		}
		return &jsapi.Message{Seq: m.Sequence, Data: m.Data}, nil
	}}, nil
}

// Piece is a part of a blob.
type Piece struct {
	Data []byte
	Size uint64 // of the whole blob, in bytes
	Next uint64 // where the next piece begins, 0 if there is none
}

// Piece reads whole chunks of a blob, one at least and most bytes at most: from the beginning, or where the piece before
// has its Next. It fails with [ErrBlobGone] if the leader lacks the blob.
func (c *Chunks) Piece(ctx context.Context, name string, from uint64, most int) (*Piece, error) {
	info, err := c.entry(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &Piece{Size: info.Size}
	for at := max(from, 1); from > 0 || uint64(len(p.Data)) < info.Size; {
		m, err := c.read(ctx, jsapi.Get{Seq: at, Next: chunksOf(c.bucket, info.NUID)})
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound) && from > 0:
			return p, nil
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil, c.incomplete(ctx, name, info.NUID)
		case err != nil:
			return nil, err
		case len(p.Data)+len(m.Data) > most && len(p.Data) > 0:
			p.Next = m.Seq
			return p, nil
		}
		p.Data, at = append(p.Data, m.Data...), m.Seq+1
	}
	return p, nil
}

// incomplete is why a blob lacks a chunk: it is stored again just now, and can be read then, or its
// content is gone.
func (c *Chunks) incomplete(ctx context.Context, name, nuid string) error {
	switch now, err := c.entry(ctx, name); {
	case err != nil:
		return err
	case now.NUID != nuid:
		return errors.New("it was overwritten while it was read")
	}
	return fmt.Errorf("%w: its content is not stored", ErrBlobGone)
}

// entry reads the entry of a blob.
func (c *Chunks) entry(ctx context.Context, name string) (*jetstream.ObjectInfo, error) {
	m, err := c.read(ctx, jsapi.Get{Last: entryOf(c.bucket, name)})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("%w: %w", ErrBlobGone, jetstream.ErrObjectNotFound)
	}
	if err != nil {
		return nil, err
	}
	var info jetstream.ObjectInfo
	if err := json.Unmarshal(m.Data, &info); err != nil || info.Deleted || info.NUID == "" || strings.ContainsAny(info.NUID, ".*> ") {
		return nil, fmt.Errorf("%w: it was deleted, or its entry is damaged", ErrBlobGone)
	}
	return &info, nil
}

func chunksOf(bucket, content string) string { return "$O." + bucket + ".C." + content }

func entryOf(bucket, name string) string {
	return "$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}
