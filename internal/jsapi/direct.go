package jsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Find returns the sequence of a message that any server with a copy of the stream has, also one that lags, or
// [jetstream.ErrMsgNotFound]. The server reads it on the connection of the client, one request after the other: it takes none of the few
// places in which the server handles requests of all clients, as [Read] does. It fails with [ErrNoDirect] if no server answers direct reads
// of the stream, and ends after [Timeout].
func Find(ctx context.Context, nc *nats.Conn, stream string, get Get) (uint64, error) {
	body, err := json.Marshal(get)
	if err != nil {
		return 0, fmt.Errorf("encode the request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream, body)
	if errors.Is(err, nats.ErrNoResponders) {
		err = ErrNoDirect
	}
	if err != nil {
		return 0, fmt.Errorf("read from stream %s: %w", stream, err)
	}
	switch status := m.Header.Get("Status"); status {
	case "":
	case statusNotFound:
		return 0, jetstream.ErrMsgNotFound
	default:
		return 0, fmt.Errorf("read from stream %s: %s %s", stream, status, m.Header.Get("Description"))
	}
	seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read from stream %s: a message without a sequence", stream)
	}
	return seq, nil
}
