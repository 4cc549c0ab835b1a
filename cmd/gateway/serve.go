package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/cmd/internal/probes"
	"github.com/oneturn/oneturn/cmd/internal/traces"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/internal/pause"
)

// Everything that can be refused without a server is checked first: who may use the gateway, and the addresses. Then the
// parts are started in order and stopped in reverse by defer.

// clientName is the name of the connection on the server.
const clientName = "oneturn-gateway"

// serve runs a gateway until ctx ends or a permanent failure.
func serve(ctx context.Context, cfg *config.Gateway, env cli.Lookup, stdout, stderr io.Writer) error {
	logger := cfg.Logger(stderr)
	access, err := newAccess(cfg, logger)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	defer access.close()
	private, err := probes.Listen("gateway", cfg.HTTP)
	if err != nil {
		return err
	}
	defer private.Close()
	public, err := listen(cfg.Listen)
	if err != nil {
		return err
	}
	defer func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		public.shutdown(ended)
	}()
	spans := traces.New(ctx, clientName, env, logger)
	defer spans.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	begin := &starting{logger: logger}
	private.Serve(begin, registry, logger)
	bounded, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	nc, err := begin.connect(bounded, cfg.NATS, clientName)
	if err != nil {
		return endOfStart(ctx, err, logger)
	}
	defer nc.Close()
	reads, err := begin.connect(bounded, cfg.NATS, clientName+"-reads")
	if err != nil {
		return endOfStart(ctx, err, logger)
	}
	defer reads.Close()
	o := options(cfg, nc, reads, access, logger, registry)
	o.TracerProvider = spans.Provider()
	g, err := begin.open(bounded, o)
	if err != nil {
		return endOfStart(ctx, err, logger)
	}
	defer g.Close()
	public.serve(g, cfg, logger)
	started := newStart(cfg, nc, public, private, spans)
	if err := awaitReady(ctx, g, logger); err != nil {
		started.NotReady = err.Error()
	}
	if err := started.write(cfg.Format, stdout); err != nil {
		return err
	}
	select {
	case err := <-public.failed:
		return err
	case <-ctx.Done():
	}
	logger.Info("stopping: a second SIGINT or SIGTERM ends the gateway immediately")
	return drain(g, public, cfg, logger)
}

// endOfStart is what a start that failed returns: nil if the gateway was stopped meanwhile.
func endOfStart(ctx context.Context, err error, logger *slog.Logger) error {
	if ctx.Err() == nil {
		return err
	}
	logger.Info("the gateway was stopped before it had begun", "reason", err)
	return nil
}

// awaitReady waits a while until the gateway follows the journal: requests are answered meanwhile, and only then it is reported as
// started. It returns why it is not ready.
func awaitReady(ctx context.Context, g *gateway.Gateway, logger *slog.Logger) error {
	const atMost, every = 10 * time.Second, 10 * time.Millisecond
	for end := time.Now().Add(atMost); ; {
		err := g.Ready()
		if err == nil || pause.For(ctx, every) != nil {
			return err
		}
		if time.Now().After(end) {
			logger.Warn("the gateway is started and not ready yet", "err", err)
			return err
		}
	}
}

// drain ends sockets and streams, and then the server.
func drain(g *gateway.Gateway, public *publicServer, cfg *config.Gateway, logger *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), cfg.Drain)
	defer cancel()
	if err := g.Drain(ctx); err != nil {
		logger.Warn("some streams did not end in time: they are cut", "err", err)
	}
	public.shutdown(ctx)
	return nil
}

// options converts the settings to the configuration of the library, where zero means the default and a negative number no
// limit.
func options(cfg *config.Gateway, nc, reads *nats.Conn, access *access, logger *slog.Logger, registry prometheus.Registerer) gateway.Options {
	unlimited := func(n int) int {
		if n == 0 {
			return -1
		}
		return n
	}
	return gateway.Options{
		NATS: nc, Reads: reads, Auth: access, Version: cli.ReadBuild().Version, Prefix: cfg.Prefix, Pool: cfg.Pool, Origins: cfg.Origins,
		Settle: cfg.Settle, FirstTurn: cfg.FirstTurn, KeepAlive: cfg.KeepAlive, Logger: logger, Registry: registry,
		Limits: gateway.Limits{
			Body: int64(cfg.MaxBody), RunBody: int64(cfg.MaxRunBody), Streams: unlimited(cfg.MaxStreams), StreamsPerTenant: cfg.MaxStreamsPerTenant, StreamsPerUser: unlimited(cfg.MaxStreamsPerUser),
			TenantRate: unlimited(cfg.TenantRate), Rate: unlimited(cfg.Rate), RunRate: unlimited(cfg.RunRate), Burst: cfg.Burst,
		},
	}
}

// start is what has been started; its fields are the JSON of -o json.
type start struct {
	URL    string `json:"url"`
	NATS   string `json:"nats"`
	HTTP   string `json:"http,omitempty"`
	Access string `json:"access"`
	// Origins is the list of --origins. Pages of the gateway's address are allowed as well.
	Origins []string `json:"origins"`
	Traces  string   `json:"traces,omitempty"` // URL to which spans are exported
	// NotReady is why the gateway was not ready within ten seconds.
	NotReady string `json:"not_ready,omitempty"`
}

func newStart(cfg *config.Gateway, nc *nats.Conn, public *publicServer, private *probes.Server, spans *traces.Exporter) *start {
	s := &start{
		URL: "http://" + public.listener.Addr().String(), NATS: config.URL(nc.ConnectedUrlRedacted()).String(), HTTP: private.URL(), Traces: spans.URL(),
		Access: "no tokens: every program on this machine may do everything",
	}
	s.Origins = append([]string{}, cfg.Origins...)
	switch {
	case cfg.JWKS != "" && cfg.Tokens != "":
		s.Access = "tokens of " + cfg.Issuer + ", and static tokens"
	case cfg.JWKS != "":
		s.Access = "tokens of " + cfg.Issuer
	case cfg.Tokens != "":
		s.Access = "static tokens"
	}
	return s
}

// write writes the start as one JSON object or for people.
func (s *start) write(format string, w io.Writer) error {
	if format == "json" {
		return cli.WriteJSON(w, s, "")
	}
	head := "is ready"
	if s.NotReady != "" {
		head = "is started, and not ready: " + s.NotReady
	}
	text := fmt.Sprintf("oneturn gateway %s\n  url        %s\n  nats       %s\n  access     %s\n  origins    %s\n",
		head, s.URL, s.NATS, s.Access, strings.Join(append([]string{"its own"}, s.Origins...), ", "))
	if s.HTTP != "" {
		text += fmt.Sprintf("  http       %s/healthz, /readyz, /metrics\n", s.HTTP)
	}
	if s.Traces != "" {
		text += fmt.Sprintf("  traces     spans of requests go to %s\n", s.Traces)
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
