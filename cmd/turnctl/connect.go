package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/denied"
	"github.com/oneturn/oneturn/subjects"
)

// longestDial bounds the attempt to reach one server.
const longestDial = 5 * time.Second

// server is a connection to NATS with the names of the product's subjects and streams.
type server struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	space   subjects.Space
	timeout time.Duration // of one request
	denied  denied.Denials
	opened  *kvstore.Store // see journal
}

// connect opens a connection. Requests without a deadline get cfg.Timeout.
func (a *app) connect(cfg *config.Turnctl) (*server, error) {
	space, err := subjects.New(cfg.Prefix)
	if err != nil {
		return nil, err
	}
	logger := config.Logger(cfg.LogLevel, cfg.LogsAsJSON, a.stderr)
	nc, err := config.Connect(cfg.NATS, "turnctl", logger, nats.Timeout(min(cfg.Timeout, longestDial)))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(cfg.Timeout))
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	s := &server{nc: nc, js: js, space: space, timeout: cfg.Timeout}
	s.denied.Watch(nc, space.Prefix())
	a.denied = &s.denied
	return s, nil
}

func (s *server) close() {
	if s.opened != nil {
		s.opened.Close()
	}
	s.nc.Close()
}

// journal opens the turn journal for reading, once per command.
func (s *server) journal() (_ *kvstore.Store, err error) {
	if s.opened == nil {
		s.opened, err = kvstore.Open(s.nc, s.space)
	}
	return s.opened, err
}

// unprovisioned adds the fix to the error that a stream is missing.
func unprovisioned(err error) error {
	const streamNotFound = 10059
	var api *jetstream.APIError
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.As(err, &api) && api.ErrorCode == streamNotFound {
		return fmt.Errorf("%w: run `turnctl provision`, or name the right server and --prefix", err)
	}
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return fmt.Errorf("%w: JetStream is not on for this account: see `turnctl doctor`", err)
	}
	return err
}
