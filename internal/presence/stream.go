package presence

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/internal/jsapi"
)

// ErrGone means that a stream or consumer does not exist any more, or is another one than before.
var ErrGone = errors.New("the stream or consumer is gone")

// Stream watches a stream of a server.
type Stream struct {
	*Watch

	nc       *nats.Conn
	name     string
	optional bool
}

// NewStream returns the watch of a stream. One that is optional may be missing until the first
// check that finds it.
func NewStream(nc *nats.Conn, name string, optional bool) *Stream {
	return &Stream{Watch: New("stream "+name, ErrGone), nc: nc, name: name, optional: optional}
}

// Check asks the server once. The error is [ErrGone] when the stream is gone for good, and stays
// so. A server that cannot be reached is not a reason.
func (s *Stream) Check(ctx context.Context) error {
	info, err := jsapi.Info(ctx, s.nc, s.name, "", 0)
	switch {
	case err == nil:
		return s.Found(info.Created, FixRecreated)
	case jsapi.Code(err) == jetstream.JSErrCodeStreamNotFound && (s.Known() || !s.optional):
		return s.Missing(FixMissing)
	}
	return s.Err()
}
