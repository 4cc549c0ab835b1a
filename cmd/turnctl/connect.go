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
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/query"
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
	journal *kvstore.Store // for reading
	reader  *query.Reader
}

// connect opens a connection. Requests without a deadline get cfg.Timeout.
func (a *app) connect(cfg *config.Turnctl) (*server, error) {
	space, err := subjects.New(cfg.Prefix)
	if err != nil {
		return nil, err
	}
	logger := cfg.Logger(a.stderr)
	nc, err := config.Connect(cfg.NATS, "turnctl", logger, nats.Timeout(min(cfg.Timeout, longestDial)))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(cfg.Timeout))
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	s := &server{nc: nc, js: js, space: space, timeout: cfg.Timeout, journal: kvstore.Read(nc, space)}
	s.reader = query.New(nc, space, s.journal, nil)
	s.denied.Watch(nc, space.Prefix())
	a.denied = &s.denied
	return s, nil
}

func (s *server) close() { s.nc.Close() }

// unprovisioned adds the fix to the error that a stream is missing.
func unprovisioned(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) || jsapi.Code(err) == jetstream.JSErrCodeStreamNotFound {
		return fmt.Errorf("%w: run `turnctl provision`, or name the right server and --prefix", err)
	}
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return fmt.Errorf("%w: JetStream is not on for this account: see `turnctl doctor`", err)
	}
	return err
}
