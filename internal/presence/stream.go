package presence

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// ErrGone means that a stream or consumer does not exist any more, or is another one than before.
var ErrGone = errors.New("the stream or consumer is gone")

const (
	errCodeNoStream = 10059

	lookTimeout = 5 * time.Second
)

// Stream watches a stream of a server.
type Stream struct {
	*Watch

	nc       *nats.Conn
	info     string // API subject of its state
	optional bool
}

// NewStream returns the watch of a stream. One that is optional may be missing until the first
// check that finds it.
func NewStream(nc *nats.Conn, name string, optional bool) *Stream {
	return &Stream{Watch: New("stream "+name, ErrGone), nc: nc, info: "$JS.API.STREAM.INFO." + name, optional: optional}
}

// Check asks the server once. The error is [ErrGone] when the stream is gone for good, and stays
// so. A server that cannot be reached is not a reason.
func (s *Stream) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	m, err := s.nc.RequestWithContext(ctx, s.info, nil)
	if err != nil {
		return s.Err()
	}
	var info struct {
		Error *struct {
			Code int `json:"err_code"`
		} `json:"error"`
		Created time.Time `json:"created"`
	}
	switch err := json.Unmarshal(m.Data, &info); {
	case err != nil:
		return s.Err()
	case info.Error == nil:
		return s.Found(info.Created, FixRecreated)
	case info.Error.Code == errCodeNoStream && (s.Known() || !s.optional):
		return s.Missing(FixMissing)
	}
	return s.Err()
}
