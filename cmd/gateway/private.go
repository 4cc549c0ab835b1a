package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// privateServer serves health checks and metrics. The zero value, for --http off, serves nothing.
type privateServer struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
}

// url is the base URL, "" if nothing is served.
func (p *privateServer) url() string {
	if p.listener == nil {
		return ""
	}
	return "http://" + p.listener.Addr().String()
}

// Limits of a request: all of them are small.
const (
	privateTimeout   = 10 * time.Second
	privateMaxHeader = 16 << 10
)

// ready reports whether the gateway can serve.
type ready interface{ Ready() error }

// serve answers until close: /healthz while the process runs, /readyz while the gateway can serve.
func (p *privateServer) serve(gateway ready, metrics prometheus.Gatherer, logger *slog.Logger) {
	if p.listener == nil {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := gateway.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	p.server = &http.Server{
		Handler: mux, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: privateTimeout, ReadTimeout: privateTimeout, WriteTimeout: 2 * privateTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: privateMaxHeader,
	}
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		if err := p.server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("health checks and metrics are no longer served", "err", err)
		}
	}()
}

// close closes all connections immediately: health checks of an ending process need no response.
func (p *privateServer) close() {
	switch {
	case p.listener == nil:
		return
	case p.server == nil:
		_ = p.listener.Close() // not served yet
		return
	}
	_ = p.server.Close() // nothing is lost
	<-p.done
}
