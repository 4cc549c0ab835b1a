// Package probes serves health checks and metrics of a command on a private address: /healthz while the process runs,
// /readyz while it does its work, and /metrics.
package probes

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

// Server serves health checks and metrics. The zero value, for --http off, serves nothing.
type Server struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
}

// Listen binds the address of --http of a command, so that an address in use is reported before anything else starts. An
// empty address serves nothing.
func Listen(command, address string) (*Server, error) {
	if address == "" {
		return &Server{}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--http %s: the address is in use, perhaps by another %s: choose another with --http HOST:PORT, or --http off", address, command)
	case err != nil:
		return nil, fmt.Errorf("--http %s: %w: choose another with --http HOST:PORT, or --http off", address, err)
	}
	return &Server{listener: l}, nil
}

// URL is the base URL, "" if nothing is served.
func (s *Server) URL() string {
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Limits of a request: all of them are small.
const (
	httpTimeout   = 10 * time.Second
	httpMaxHeader = 16 << 10
)

// Ready reports why a command does not do its work, nil if it does.
type Ready interface{ Ready() error }

// Serve answers until [Server.Close].
func (s *Server) Serve(command Ready, metrics prometheus.Gatherer, logger *slog.Logger) {
	if s.listener == nil {
		return
	}
	s.server = &http.Server{
		Handler: s.local(handler(command, metrics)), ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: httpTimeout, ReadTimeout: httpTimeout, WriteTimeout: 2 * httpTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: httpMaxHeader,
	}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("health checks and metrics are no longer served", "err", err)
		}
	}()
}

// local refuses requests whose Host is not a loopback name, if the address is loopback only: a web page whose
// domain resolves to this machine (DNS rebinding) could read the responses otherwise.
func (s *Server) local(next http.Handler) http.Handler {
	if at, ok := s.listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
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

func handler(command Ready, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := command.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux
}

// Close closes all connections immediately: health checks of an ending process need no response.
func (s *Server) Close() {
	switch {
	case s.listener == nil:
		return
	case s.server == nil:
		_ = s.listener.Close() // not served yet
		return
	}
	_ = s.server.Close() // nothing is lost
	<-s.done
}
