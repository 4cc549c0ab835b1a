package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/subjects"
)

// sweepWait is the ack wait that sweeps go by.
const sweepWait = 30 * time.Second

// sweeper is the role that sweeps as a worker does, and does nothing else.
type sweeper struct {
	process

	nc    *nats.Conn
	store *kvstore.Store
	sweep *sweep.Sweep
}

// swept is one sweep and what it took.
type swept struct {
	sweep.Swept `json:"swept"`

	Took     time.Duration `json:"took"`
	Requests uint64        `json:"requests"` // to the server: reads, writes and pulls
}

func startSweeper(s spec, dial dialer) (*sweeper, error) {
	space, err := subjects.New(subjects.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	nc, err := dial()
	if err != nil {
		return nil, fmt.Errorf("connect the sweeper: %w", err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect the sweeper: %w", err)
	}
	store, err := kvstore.Open(nc, space)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &sweeper{process: process{spec: s}, nc: nc, store: store, sweep: &sweep.Sweep{
		Space: space, JS: js, Store: store, LeaseHeld: sweep.LeaseHeld(js, space), AckWait: sweepWait,
		Budget: sweep.Budget, Rate: s.SweepRate, Logger: slog.New(slog.DiscardHandler),
	}}, nil
}

func (s *sweeper) do(ctx context.Context, r request) (reply, error) {
	if r.Do != "sweep" {
		return s.process.do(r)
	}
	pages, err := sweep.OpenPages(ctx, s.sweep.JS, s.sweep.Space)
	if err != nil {
		return reply{}, err
	}
	before, start := s.nc.Stats().OutMsgs, time.Now()
	// As if all turns had been claimed long enough ago to be judged.
	found, err := s.sweep.Run(ctx, pages, start.Add(time.Hour), sweep.Scope{}, s.sweep.Resume)
	if err != nil {
		return reply{}, err
	}
	return reply{Usage: readUsage(), Swept: &swept{Swept: found, Took: time.Since(start), Requests: s.nc.Stats().OutMsgs - before}}, nil
}

func (s *sweeper) close() error {
	s.store.Close()
	s.nc.Close()
	return nil
}
