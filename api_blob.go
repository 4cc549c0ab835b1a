package oneturn

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

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// BlobRequest asks for a payload over the inline limit, by the name that an event of the subject's
// tenant has in its place.
type BlobRequest struct {
	Blob string `json:"blob"`           // the name: $blob of the event
	From uint64 `json:"from,omitempty"` // Oneturn-Next of the answer before, 0 = the beginning
}

// Headers of an answer to [VerbBlob], whose body is a piece of the blob.
const (
	HeaderBlobSize = "Oneturn-Size" // of the whole blob, in bytes
	HeaderBlobNext = "Oneturn-Next" // From of the next piece; missing when there is none
)

// piece is an answer to [VerbBlob].
type piece struct {
	data []byte
	size uint64
	next uint64
}

func (p *piece) message(reply string) *nats.Msg {
	m := &nats.Msg{Subject: reply, Data: p.data, Header: nats.Header{HeaderBlobSize: {strconv.FormatUint(p.size, 10)}}}
	if p.next > 0 {
		m.Header.Set(HeaderBlobNext, strconv.FormatUint(p.next, 10))
	}
	return m
}

// errNotFound says that what a request names is not there.
var errNotFound = errors.New("not found")

// blob reads a piece of a blob: whole chunks of the object store, 512 KiB at most.
func (a *api) blob(ctx context.Context, app string, body []byte) (any, error) {
	var q BlobRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Blob == "" {
		return nil, fmt.Errorf(`%w: want {"blob":"…","from":0}`, errBadRequest)
	}
	if !isPublicBlob(app, q.Blob) { // also those of others, whose names tell nothing then
		return nil, fmt.Errorf("%w: this tenant has no event with blob %.300q", errNotFound, q.Blob)
	}
	stream, err := a.js.Stream(ctx, "OBJ_"+a.space.BlobsBucket())
	if err != nil {
		return nil, fmt.Errorf("open the blobs: %w", err)
	}
	info, err := a.blobInfo(ctx, stream, q.Blob)
	if err != nil {
		return nil, err
	}
	p := &piece{size: info.Size}
	chunks := "$O." + a.space.BlobsBucket() + ".C." + info.NUID
	for from, most := max(q.From, 1), min(pageBytes, a.most); ; {
		m, err := a.blobMessage(ctx, stream, from, chunks)
		switch {
		case errors.Is(err, idempotency.ErrNotFound) && (q.From > 0 || uint64(len(p.data)) >= info.Size):
			return p, nil
		case errors.Is(err, idempotency.ErrNotFound):
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
// the message there the error is [idempotency.ErrNotFound].
func (a *api) blobMessage(ctx context.Context, stream jetstream.Stream, from uint64, subject string) (*handlers.StoredMessage, error) {
	var m *jetstream.RawStreamMsg
	var err error
	request := fmt.Sprintf(`{"seq":%d,"next_by_subj":%q}`, from, subject)
	if from > 0 {
		m, err = stream.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
	} else {
		m, err = stream.GetLastMsgForSubject(ctx, subject)
		request = fmt.Sprintf(`{"last_by_subj":%q}`, subject)
	}
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return handlers.LeaderMessage(ctx, a.js.Conn(), "OBJ_"+a.space.BlobsBucket(), request)
	case err != nil:
		return nil, fmt.Errorf("read a blob: %w", err)
	}
	return &handlers.StoredMessage{Seq: m.Sequence, Data: m.Data}, nil
}

// blobInfo reads what the object store knows of a blob.
func (a *api) blobInfo(ctx context.Context, stream jetstream.Stream, name string) (*jetstream.ObjectInfo, error) {
	m, err := a.blobMessage(ctx, stream, 0, "$O."+a.space.BlobsBucket()+".M."+base64.URLEncoding.EncodeToString([]byte(name)))
	if err != nil && !errors.Is(err, idempotency.ErrNotFound) {
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

// isPublicBlob reports whether a name is that of a blob that a public event of a tenant has. The
// names of blobs are keys of records and the beginning of a hash; those of dead letters are not.
func isPublicBlob(app, name string) bool {
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return false
	}
	r, ok := subjects.ParseKey("e." + name[:at])
	return ok && r.App == app && slices.Contains([]string{events.KindToolCall, events.KindToolResponse, events.RecordAsk}, r.Kind)
}
