package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// Payloads that are too large for an event, by the name that stands in their place. Only names that an event of the chat
// holds are served: the name leads to the record, and the record has size and hash.

// blobPiece bounds what is read of a blob at a time, in bytes.
const blobPiece = 512 << 10

// noBlob is the refusal of a name that no event of the chat holds, and of a blob that is not stored any more: the same,
// so that it reveals nothing.
func noBlob() *refusedError {
	return refuse(http.StatusNotFound, "not_found", "no event of this chat has such a payload, or its retention is over: take the name from $blob of an event")
}

// blob is GET /api/chats/{app}/{chat}/blobs/{name}.
func (g *Gateway) blob(c *call) error {
	ctx := c.r.Context()
	if _, err := g.mayUseChat(ctx, c.id, c.target); err != nil {
		return err
	}
	blob, err := g.namedBlob(ctx, c)
	if err != nil {
		return err
	}
	chunks, err := store.OpenChunks(ctx, g.js, g.space.BlobsBucket())
	if err != nil {
		return unavailable(err)
	}
	first, err := chunks.Piece(ctx, blob.Blob, 0, blobPiece)
	switch {
	case errors.Is(err, store.ErrBlobGone):
		return noBlob()
	case err != nil:
		return unavailable(err)
	}
	return sendBlob(ctx, c.w, chunks, blob, first)
}

// namedBlob finds the reference to a blob in the event that holds it.
func (g *Gateway) namedBlob(ctx context.Context, c *call) (events.Blob, error) {
	name := c.params["name"]
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return events.Blob{}, noBlob()
	}
	r, ok := subjects.ParseKey("e." + name[:at])
	if !ok || r.App != subjects.Token(c.target.App) || r.Chat != subjects.Token(c.target.Chat) {
		return events.Blob{}, noBlob()
	}
	// A blob of a question or of shown content has the kind ask, one of a partial result the kind of the response.
	keys := []string{r.Name()}
	if r.ID != "" {
		keys = append(keys, r.Public(events.RecordShow, r.ID))
	} else {
		keys = append(keys, r.Public(events.RecordResult))
	}
	found, err := g.journal(ctx).store.LastOf(ctx, keys)
	if err != nil {
		return events.Blob{}, err
	}
	for _, rec := range found {
		if rec == nil || rec.Damaged() {
			continue
		}
		if tree, err := events.Decode(rec.Data); err == nil {
			if blob, ok := blobIn(tree, name); ok && !isHiddenText(r.Kind, rec.Data) {
				return blob, nil
			}
		}
	}
	return events.Blob{}, noBlob()
}

func isHiddenText(kind string, event []byte) bool {
	if kind != events.RecordText {
		return false
	}
	hidden, err := isHidden(event)
	return hidden || err != nil
}

// blobIn finds the reference to a blob in the tree of an event.
func blobIn(v any, name string) (events.Blob, bool) {
	switch v := v.(type) {
	case map[string]any:
		if blob, ok := events.BlobOf(v); ok && blob.Blob == name {
			return blob, true
		}
		for _, inner := range v {
			if blob, ok := blobIn(inner, name); ok {
				return blob, true
			}
		}
	case []any:
		for _, inner := range v {
			if blob, ok := blobIn(inner, name); ok {
				return blob, true
			}
		}
	}
	return events.Blob{}, false
}

// sendBlob streams a blob. Each piece is sent when the next one has been read and the last one when size and hash are
// right, so a client never gets the whole of a blob that is not what its event names.
func sendBlob(ctx context.Context, w http.ResponseWriter, chunks *store.Chunks, blob events.Blob, piece *store.Piece) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", `attachment; filename="payload.json"`)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	sum, size := sha256.New(), 0
	for {
		sum.Write(piece.Data)
		size += len(piece.Data)
		if piece.Next == 0 || size > blob.Size {
			break
		}
		next, err := chunks.Piece(ctx, blob.Blob, piece.Next, blobPiece)
		if err != nil {
			return broken(size == len(piece.Data), err)
		}
		begin(h, blob)
		if err := writePieces(w, piece.Data); err != nil {
			return nil //nolint:nilerr // the client is gone
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // HTTP/2 would end the reply while the next piece is read
		piece = next
	}
	if !matches(sum, size, blob) {
		return broken(size == len(piece.Data), errBlob)
	}
	begin(h, blob)
	_ = writePieces(w, piece.Data) // a client that is gone gets nothing
	return nil
}

func begin(h http.Header, blob events.Blob) { h.Set("Content-Length", strconv.Itoa(blob.Size)) }

func matches(sum hash.Hash, size int, blob events.Blob) bool {
	return size == blob.Size && hex.EncodeToString(sum.Sum(nil)) == blob.SHA256
}

var errBlob = errors.New("the stored blob has another size or hash than its event names")

// broken ends the reply with a blob that cannot be read: as a refusal if nothing is sent yet, else without its end.
func broken(nothingSent bool, err error) error {
	if nothingSent {
		return unavailable(err)
	}
	panic(http.ErrAbortHandler)
}
