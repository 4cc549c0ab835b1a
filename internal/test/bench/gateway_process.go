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

// The role gateway is the gateway in a process that can write profiles, which the command cannot. Measurements without profiles use the
// command.

// profiledGateway is the role.
type profiledGateway struct {
	process

	gateway *gateway.Gateway
	server  *http.Server
	end     func()
	url     string
}

func startProfiledGateway(ctx context.Context, s spec, dial dialer) (_ *profiledGateway, err error) {
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
	p := &profiledGateway{process: process{spec: s}, gateway: g, end: nc.Close, url: "http://" + listener.Addr().String()}
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: connectTime}
	go func() { _ = p.server.Serve(listener) }() // ends with close
	return p, nil
}

// quietRuns is how long a chat has to be quiet until a run of AG-UI ends: longer than any measurement.
const quietRuns = 10 * time.Minute

func (p *profiledGateway) do(_ context.Context, q request) (reply, error) { return p.process.do(q) }

func (p *profiledGateway) close() error {
	p.gateway.Close()
	p.end()
	return p.server.Close() //nolint:wrapcheck // of the listener
}
