package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/internal/denied"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/subjects"
)

// A gateway may be started together with the server, or before the streams are made: it waits for both, and the health checks report
// for what. What does not pass by waiting, such as a wrong password, ends it immediately.

const (
	startTimeout = 30 * time.Second // for the server and its streams together, as long as workers have for them
	startPause   = 200 * time.Millisecond
	startRequest = 2 * time.Second // bounds one request: a right that is denied has no reply
)

// errNotReady means that the server lacks what gateways need.
var errNotReady = errors.New("the server is not ready for gateways")

// starting waits for what a gateway needs. Until the gateway is there it reports why it is not ready.
type starting struct {
	logger  *slog.Logger
	why     atomic.Pointer[string]
	gateway atomic.Pointer[gateway.Gateway]
}

// Ready reports why the gateway does not serve now, nil if it does.
func (s *starting) Ready() error {
	if g := s.gateway.Load(); g != nil {
		return g.Ready()
	}
	if why := s.why.Load(); why != nil {
		return errors.New(*why)
	}
	return errors.New("the gateway is starting")
}

// await tries until it succeeds, its error is permanent, or ctx ends. What is waited for is logged once.
func (s *starting) await(ctx context.Context, what string, try func() (again bool, err error)) error {
	for waits := false; ; {
		again, err := try()
		if err == nil || !again {
			return err
		}
		why := "waiting for " + what + ": " + err.Error()
		s.why.Store(&why)
		if !waits {
			s.logger.Warn("the gateway waits for what it needs", "for", what, "at_most", startTimeout, "reason", err)
			waits = true
		}
		if pause.For(ctx, startPause) != nil {
			return err
		}
	}
}

// connect connects as soon as the server is there.
func (s *starting) connect(ctx context.Context, cfg config.NATS, name string) (nc *nats.Conn, err error) {
	err = s.await(ctx, "the NATS server", func() (again bool, err error) {
		nc, err = config.Connect(cfg, name, s.logger)
		var host *net.DNSError // containers get their names when they are started
		return errors.Is(err, nats.ErrNoServers) || errors.As(err, &host), err
	})
	return nc, err
}

// open waits for the streams and buckets, and opens the gateway on them.
func (s *starting) open(ctx context.Context, o gateway.Options) (*gateway.Gateway, error) {
	space, err := subjects.New(o.Prefix)
	if err != nil {
		return nil, err
	}
	var denials denied.Denials
	defer denials.Watch(o.NATS, space.Prefix())()
	if err := s.await(ctx, "its streams", func() (again bool, err error) {
		err = checkStreams(ctx, o.NATS, space)
		if err != nil && denials.Err(startTimeout) != nil {
			return false, denials.Explain(err)
		}
		return true, err
	}); err != nil {
		return nil, err
	}
	g, err := gateway.New(ctx, o)
	if err != nil {
		return nil, denials.Explain(err)
	}
	s.gateway.Store(g)
	return g, nil
}

// checkStreams returns which streams and buckets are missing, or why that is not known.
func checkStreams(ctx context.Context, nc *nats.Conn, space subjects.Space) error {
	const fix = "run `turnctl provision` or start a worker with an embedded server"
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startRequest)
	defer cancel()
	var missing []string
	for _, stream := range []string{space.TurnsStream(), space.WorkflowsStream(), "KV_" + space.ContextBucket(), "OBJ_" + space.BlobsBucket()} {
		_, err := jsapi.Info(ctx, nc, stream, "", 0)
		switch {
		case err == nil:
		case jsapi.Code(err) == jetstream.JSErrCodeStreamNotFound:
			missing = append(missing, stream)
		case errors.Is(err, nats.ErrNoResponders):
			return fmt.Errorf("%w (%w): start it with JetStream, then %s", errNotReady, err, fix)
		default:
			return fmt.Errorf("%w (%w)", errNotReady, err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w (missing streams: %s): %s", errNotReady, strings.Join(missing, ", "), fix)
	}
	return nil
}
