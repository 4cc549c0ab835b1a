package main

import (
	"context"
	"strings"

	"github.com/oneturn/oneturn/embedded"
)

// server is the role of the NATS server: the embedded one, file storage, default sync.
type server struct {
	process
	*embedded.Server
}

func startServer(ctx context.Context, s spec) (*server, error) {
	listen := "127.0.0.1:0"
	if _, address, again := strings.Cut(s.URL, "://"); again {
		listen = address
	}
	running, err := embedded.Start(ctx, embedded.Options{Listen: listen, Store: s.Store, MaxPayload: s.MaxPayload})
	if err != nil {
		return nil, err
	}
	return &server{process{spec: s}, running}, nil
}

func (s *server) do(_ context.Context, r request) (reply, error) { return s.process.do(r) }

func (s *server) close() error { return s.Stop() }
