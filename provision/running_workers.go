package provision

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
)

// pingTimeout is how long workers may take to answer a ping.
const pingTimeout = time.Second

// inUse reports whether workers run: they have asked this consumer for messages, or answer to a ping. A
// worker whose slots are all taken asks for none, nor does one between two requests.
func (p Plan) inUse(ctx context.Context, nc *nats.Conn, info *jetstream.ConsumerInfo) bool {
	return info.NumWaiting > 0 || p.answered(ctx, nc)
}

// answered pings the service that every worker offers.
func (p Plan) answered(ctx context.Context, nc *nats.Conn) bool {
	subject, err := micro.ControlSubject(micro.PingVerb, p.api, "")
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err = nc.RequestWithContext(ctx, subject, nil)
	return err == nil
}
