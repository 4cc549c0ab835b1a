package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/memory"
)

// The role door is the gateway in a process that can write profiles, which the command cannot. It is not measured otherwise.

// door is the role.
type door struct {
	process

	gateway *gateway.Gateway
	server  *http.Server
	end     func()
	url     string
}

func startDoor(ctx context.Context, s spec, dial dialer) (_ *door, err error) {
	memory.PaceConnections(os.LookupEnv, memory.ContainerLimit) // as the command
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	nc, err := dial()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect the gateway: %w", err), listener.Close())
	}
	origins, err := auth.NewOrigins(nil)
	if err != nil {
		return nil, err
	}
	dev, err := auth.NewDevelopment(listener.Addr().String(), origins)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	const unlimited = -1
	g, err := gateway.New(ctx, gateway.Options{
		NATS: nc, Auth: dev, Settle: quietRuns, Registry: registry,
		Limits: gateway.Limits{Streams: unlimited, StreamsPerUser: unlimited, Rate: unlimited, TenantRate: unlimited, RunRate: unlimited},
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", g)
	d := &door{process: process{spec: s}, gateway: g, end: nc.Close, url: "http://" + listener.Addr().String()}
	d.server = &http.Server{Handler: mux, ReadHeaderTimeout: connectTime}
	go func() { _ = d.server.Serve(listener) }() // ends with close
	return d, nil
}

// quietRuns is how long a chat has to be quiet until a run of AG-UI ends: longer than any measurement.
const quietRuns = 10 * time.Minute

func (d *door) do(_ context.Context, q request) (reply, error) { return d.process.do(q) }

func (d *door) close() error {
	d.gateway.Close()
	d.end()
	return d.server.Close() //nolint:wrapcheck // of the listener
}
