package oneturn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/oneturn/oneturn/events"
)

// Blob stands in an event for a payload over 256 KiB. [events.BlobOf] finds it.
type Blob = events.Blob

// ErrBlob says that a blob that was fetched is not the one that the event names.
var ErrBlob = errors.New("the blob is not what its event says")

// Blob fetches the JSON that b stands for in an event of a tenant, "default" if app is empty. Workers
// answer, in pieces of up to 512 KiB, so the caller needs rights on the verb blob of its tenant and
// none on JetStream. Size and hash are checked.
func (c *Client) Blob(ctx context.Context, app string, b Blob) ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("fetch blob %.300q: %w", b.Blob, err) }
	var data []byte
	for q := (BlobRequest{Blob: b.Blob}); ; {
		m, err := c.askFor(ctx, app, q)
		if err != nil {
			return fail(err)
		}
		if data = append(data, m.data...); len(data) > b.Size {
			return fail(fmt.Errorf("%w: it is longer than %d bytes", ErrBlob, b.Size))
		}
		if m.next <= q.From {
			break
		}
		q.From = m.next
	}
	if sum := sha256.Sum256(data); len(data) != b.Size || hex.EncodeToString(sum[:]) != b.SHA256 {
		return fail(fmt.Errorf("%w: it has %d bytes of %d, or another hash", ErrBlob, len(data), b.Size))
	}
	return data, nil
}

func (c *Client) askFor(ctx context.Context, app string, q BlobRequest) (*piece, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	m, err := c.ask(ctx, tenant(TurnID{App: app}), VerbBlob, q)
	if err != nil {
		return nil, err
	}
	p := &piece{data: m.Data}
	if next := m.Header.Get(HeaderBlobNext); next != "" {
		if p.next, err = strconv.ParseUint(next, 10, 64); err != nil {
			return nil, fmt.Errorf("request API: header %s: %w", HeaderBlobNext, err)
		}
	}
	return p, nil
}
