package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// web serves health checks and metrics. The zero value, for --http off, serves nothing.
type web struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
}

// listen binds the address, so that an address in use is reported before anything else starts.
func listen(address string) (*web, error) {
	if address == "" {
		return &web{}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--http %s: the address is in use, perhaps by another worker: choose another with --http HOST:PORT, or --http off", address)
	case err != nil:
		return nil, fmt.Errorf("--http %s: %w: choose another with --http HOST:PORT, or --http off", address, err)
	}
	return &web{listener: l}, nil
}

// url is the base URL, "" if nothing is served.
func (w *web) url() string {
	if w.listener == nil {
		return ""
	}
	return "http://" + w.listener.Addr().String()
}

// Limits of a request: all of them are small.
const (
	httpTimeout   = 10 * time.Second
	httpMaxHeader = 16 << 10
)

// ready reports whether a worker consumes.
type ready interface{ Ready() error }

// serve answers until close: /healthz while the process runs, /readyz while it consumes.
func (w *web) serve(worker ready, metrics prometheus.Gatherer, logger *slog.Logger) {
	if w.listener == nil {
		return
	}
	w.server = &http.Server{
		Handler: w.local(handler(worker, metrics)), ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: httpTimeout, ReadTimeout: httpTimeout, WriteTimeout: 2 * httpTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: httpMaxHeader,
	}
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		if err := w.server.Serve(w.listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("health checks and metrics are no longer served", "err", err)
		}
	}()
}

// local refuses requests whose Host is not a loopback name, if the address is loopback only: a web page whose
// domain resolves to this machine (DNS rebinding) could read the responses otherwise.
func (w *web) local(next http.Handler) http.Handler {
	if at, ok := w.listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		if !loopback(r.Host) {
			http.Error(to, "this address is served for loopback only: ask for localhost or 127.0.0.1", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(to, r)
	})
}

// loopback reports whether the Host of a request, with or without a port, is a loopback name or
// address.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return ip != nil && ip.IsLoopback()
}

func handler(worker ready, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := worker.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux
}

// close closes all connections immediately: health checks of an ending process need no response.
func (w *web) close() {
	switch {
	case w.listener == nil:
		return
	case w.server == nil:
		_ = w.listener.Close() // not served yet
		return
	}
	_ = w.server.Close() // nothing is lost
	<-w.done
}
