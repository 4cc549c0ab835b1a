package oneturn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
)

// ErrBlob means that a fetched blob has another size or hash than its event names.
var ErrBlob = errors.New("the blob does not match its event")

// BlobID names a payload over the inline limit, for [Client.Blob].
type BlobID struct {
	App  string      // tenant, "default" if empty
	Blob events.Blob // as events.BlobOf finds it in a payload
}

// Blob fetches the JSON of a payload that an event names instead of containing it, and checks its size and hash.
// A running worker has to reply, else it fails with [ErrNoWorker]. The payload comes by the request API, in pieces
// of up to 512 KiB: the client needs the right to publish on <prefix>.api.<app>.blob, and none on JetStream.
func (c *Client) Blob(ctx context.Context, id BlobID) ([]byte, error) {
	b := id.Blob
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("fetch blob %.300q: %w", b.Blob, err) }
	var data []byte
	for r := (api.BlobRequest{Blob: b.Blob}); ; {
		piece, next, err := c.blobPiece(ctx, id.App, r)
		if err != nil {
			return fail(err)
		}
		if data = append(data, piece...); len(data) > b.Size {
			return fail(fmt.Errorf("%w: it is longer than %d bytes", ErrBlob, b.Size))
		}
		if next <= r.From {
			break
		}
		r.From = next
	}
	if sum := sha256.Sum256(data); len(data) != b.Size || hex.EncodeToString(sum[:]) != b.SHA256 {
		return fail(fmt.Errorf("%w: it has %d bytes of %d, or another hash", ErrBlob, len(data), b.Size))
	}
	return data, nil
}

// blobPiece fetches one piece, and returns where the next one begins, 0 if there is none.
func (c *Client) blobPiece(ctx context.Context, app string, r api.BlobRequest) (data []byte, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := c.ask(ctx, tenant(app), api.VerbBlob, r)
	if err != nil {
		return nil, 0, err
	}
	if text := m.Header.Get(api.HeaderBlobNext); text != "" {
		if next, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, 0, fmt.Errorf("request API: header %s: %w", api.HeaderBlobNext, err)
		}
	}
	return m.Data, next, nil
}
