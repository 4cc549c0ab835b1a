package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/oneturn/oneturn/config"
)

// Times of the public server. Bodies and streams have limits of their endpoints.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
)

// publicServer serves the gateway to frontends.
type publicServer struct {
	listener net.Listener
	server   *http.Server
	failed   chan error
}

// listen binds the address, so that one in use is reported before anything else starts.
func listen(address string) (*publicServer, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--listen %s: the address is in use, perhaps by another gateway: choose another with --listen HOST:PORT", address)
	case err != nil:
		return nil, fmt.Errorf("--listen %s: %w: choose another with --listen HOST:PORT", address, err)
	}
	return &publicServer{listener: l}, nil
}

// serve answers requests until close.
func (p *publicServer) serve(handler http.Handler, cfg *config.Gateway, logger *slog.Logger) {
	p.server = &http.Server{
		Handler: handler, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: int(cfg.MaxHeader),
	}
	p.failed = make(chan error, 1)
	limited := limit(pacedListener{p.listener}, cfg.MaxConnections)
	go func() {
		if err := p.server.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			p.failed <- fmt.Errorf("serve %s: %w", p.listener.Addr(), err)
		}
		close(p.failed)
	}()
}

// shutdown stops the server: requests that are answered now may end until ctx does.
func (p *publicServer) shutdown(ctx context.Context) {
	if p.server == nil {
		_ = p.listener.Close() // not served yet
		return
	}
	if err := p.server.Shutdown(ctx); err != nil {
		_ = p.server.Close() // what did not end is cut
	}
	for range p.failed { // until it is closed
	}
}
