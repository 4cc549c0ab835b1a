package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
)

// StoredMessage is a message of a stream as its leader has it.
type StoredMessage struct {
	Seq    uint64 `json:"seq"`
	Header []byte `json:"hdrs"`
	Data   []byte `json:"data"`
}

// deleted reports whether the message marks the end of a key of a bucket.
func (m *StoredMessage) deleted() bool {
	return bytes.Contains(m.Header, []byte("KV-Operation:")) || bytes.Contains(m.Header, []byte("Nats-Marker-Reason:"))
}

// LeaderMessage asks the leader of a stream for a message, or returns [idempotency.ErrNotFound]. The
// request is that of the JetStream API. What a replica does not have may be there: only this read tells.
func LeaderMessage(ctx context.Context, nc *nats.Conn, stream, request string) (*StoredMessage, error) {
	const noMessage = 10037
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	reply, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, []byte(request))
	if err != nil {
		return nil, fmt.Errorf("read from %s: %w", stream, err)
	}
	var r struct {
		Error *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
		Message StoredMessage `json:"message"`
	}
	switch err := json.Unmarshal(reply.Data, &r); {
	case err != nil:
		return nil, fmt.Errorf("read from %s: %w", stream, err)
	case r.Error != nil && r.Error.Code == noMessage:
		return nil, idempotency.ErrNotFound
	case r.Error != nil:
		return nil, fmt.Errorf("read from %s: server error %d: %s", stream, r.Error.Code, r.Error.Description)
	case r.Message.Seq == 0:
		return nil, fmt.Errorf("read from %s: an answer without a message", stream)
	}
	return &r.Message, nil
}
