package jsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Timeout bounds one request to the server.
const Timeout = 5 * time.Second

// Get selects a message of a stream: by its sequence, as the last one of a subject, or as the first one from a
// sequence on whose subject matches a filter.
type Get struct {
	Seq  uint64 `json:"seq,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
}

// Message is a message of a stream as its leader stores it.
type Message struct {
	Subject   string    `json:"subject"`
	Seq       uint64    `json:"seq"`
	RawHeader []byte    `json:"hdrs"`
	Data      []byte    `json:"data"`
	Time      time.Time `json:"time"`
}

// Header decodes the headers of the message. A publisher can store headers that no client can decode: a message is
// read all the same, and only a caller that needs its headers gets the error.
func (m *Message) Header() (nats.Header, error) {
	if len(m.RawHeader) == 0 {
		return nats.Header{}, nil
	}
	header, err := nats.DecodeHeadersMsg(m.RawHeader)
	if err != nil {
		return nil, fmt.Errorf("decode the headers of message %d on %s: %w", m.Seq, m.Subject, err)
	}
	return header, nil
}

// Read returns a message from the leader of a stream, also where the stream allows direct reads: what a replica lacks
// may be there. Without such a message the error is [jetstream.ErrMsgNotFound].
func Read(ctx context.Context, nc *nats.Conn, stream string, get Get) (*Message, error) {
	var reply struct {
		refusal

		Message Message `json:"message"`
	}
	switch err := request(ctx, nc, "STREAM.MSG.GET."+stream, get, &reply); {
	case Code(err) == jetstream.JSErrCodeMessageNotFound:
		return nil, jetstream.ErrMsgNotFound
	case err != nil:
		return nil, fmt.Errorf("read from stream %s: %w", stream, err)
	case reply.Message.Seq == 0:
		return nil, fmt.Errorf("read from stream %s: the reply holds no message", stream)
	}
	return &reply.Message, nil
}

// refusal is the part of a reply in which the server refuses a request.
type refusal struct {
	Error *jetstream.APIError `json:"error"`
}

func (r *refusal) refused() *jetstream.APIError { return r.Error }

// request sends a request to the JetStream API and decodes the reply. An error of the server is a
// [*jetstream.APIError]. It ends after [Timeout].
func request(ctx context.Context, nc *nats.Conn, verb string, body any, reply interface{ refused() *jetstream.APIError }) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, "$JS.API."+verb, data)
	if err != nil {
		return err //nolint:wrapcheck // the caller names the stream
	}
	if err := json.Unmarshal(m.Data, reply); err != nil {
		return fmt.Errorf("decode the reply: %w", err)
	}
	if failed := reply.refused(); failed != nil {
		return failed
	}
	return nil
}
