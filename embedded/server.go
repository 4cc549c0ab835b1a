package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// ErrPortInUse says that something else listens on the wanted address.
var ErrPortInUse = errors.New("the address is in use")

// Server is a running embedded server. Its methods are safe for concurrent use.
type Server struct {
	ns   *server.Server
	lock *os.File // nil with Options.Memory
	dir  string   // to remove at the end, only with Options.Memory
	auth []nats.Option
	up   chan struct{} // closed when the server's start has returned
	stop func() error

	store    string                 // directory
	config   server.JetStreamConfig // as it was at the start, to open the store again
	log      *serverLog
	unwatch  context.CancelFunc // nil with Options.Memory
	watching sync.WaitGroup

	opening sync.Mutex // held while the store is opened anew, or closed for good
	ended   bool
}

// Start runs a server and returns when it takes connections. ctx bounds the start only;
// call [Server.Stop] to end the server. Errors are [ErrLocked], [ErrPortInUse] or tell which
// option to mend.
func Start(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	host, port, err := opts.address()
	if err != nil {
		return nil, err
	}
	s := &Server{}
	s.stop = sync.OnceValue(s.shutdown)
	if opts.Memory {
		// JetStream wants a directory even if no stream uses it.
		s.dir, err = os.MkdirTemp("", "oneturn-")
		opts.Store = s.dir
	} else {
		s.lock, err = openStore(opts.Store)
	}
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx, opts, host, port); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// start runs the server on an opened store.
func (s *Server) start(ctx context.Context, opts Options, host string, port int) error {
	ns, err := server.NewServer(&server.Options{
		ServerName:             "oneturn-embedded",
		Host:                   host,
		Port:                   port,
		Username:               opts.Username,
		Password:               opts.Password,
		MaxPayload:             int32(opts.MaxPayload), // checked to be at most 64 MiB
		JetStream:              true,
		StoreDir:               opts.Store,
		JetStreamMaxStore:      opts.MaxStore,
		SyncAlways:             opts.SyncAlways,
		NoSigs:                 true, // signals belong to the command
		DisableJetStreamBanner: true,
	})
	if err != nil {
		return fmt.Errorf("embedded server: configure: %w", err)
	}
	s.ns = ns
	s.store, s.log = opts.Store, &serverLog{log: opts.Logger, fatal: make(chan error, 1)}
	ns.SetLoggerV2(s.log, false, false, false)
	if opts.Password != "" {
		s.auth = []nats.Option{nats.UserInfo(opts.Username, opts.Password)}
	}
	s.up = make(chan struct{})
	go func() {
		defer close(s.up)
		ns.Start() // opens the store: takes as long as it is large
	}()
	if err := s.ready(ctx, net.JoinHostPort(host, strconv.Itoa(max(port, 0)))); err != nil {
		return err
	}
	s.config = *ns.JetStreamConfig()
	s.config.StoreDir = opts.Store // without the directory that the server adds
	if !opts.Memory {
		watch, stop := context.WithCancel(context.WithoutCancel(ctx))
		s.unwatch = stop
		s.watching.Go(func() { s.watchFull(watch) })
	}
	return nil
}

// ready waits until the server takes connections, gives up or ctx ends.
func (s *Server) ready(ctx context.Context, listen string) error {
	const step = 10 * time.Millisecond
	deadline := time.Now().Add(startTimeout)
	for {
		select {
		case err := <-s.log.fatal:
			if strings.Contains(err.Error(), "address already in use") {
				return fmt.Errorf("embedded server: --listen %s: %w; connect to the server that runs there with --nats URL, "+
					"or choose another address with --listen HOST:PORT", listen, ErrPortInUse)
			}
			return fmt.Errorf("embedded server: start on %s: %w", listen, err)
		case <-ctx.Done():
			return fmt.Errorf("embedded server: start on %s: %w", listen, context.Cause(ctx))
		default:
		}
		if s.ns.ReadyForConnections(step) {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("embedded server: start on %s: not ready after %s, see its warnings in the log", listen, startTimeout)
		}
	}
	if !s.ns.JetStreamEnabled() {
		return fmt.Errorf("embedded server: start on %s: JetStream is off, see the server's errors in the log; is the store readable?", listen)
	}
	return nil
}

// URL returns the address for clients outside the process, without user and password.
func (s *Server) URL() string { return s.ns.ClientURL() }

// SyncAlways reports whether the server writes every record through to the disk, for the
// durability tier.
func (s *Server) SyncAlways() bool {
	cfg := s.ns.JetStreamConfig()
	return cfg != nil && cfg.SyncAlways
}

// Conn connects within the process, without TCP. It signs in by itself if the server has a
// password. The caller closes the connection, before [Server.Stop].
func (s *Server) Conn(opts ...nats.Option) (*nats.Conn, error) {
	all := append([]nats.Option{nats.InProcessServer(s.ns)}, s.auth...)
	nc, err := nats.Connect("", append(all, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embedded server: connect within the process: %w", err)
	}
	return nc, nil
}

// Stop ends the server, waits until it has written everything, and unlocks the store.
// Further calls return the same result.
func (s *Server) Stop() error { return s.stop() }

// shutdown is the one run of Stop.
func (s *Server) shutdown() error {
	if s.unwatch != nil {
		s.unwatch()
		s.watching.Wait()
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	s.ended = true
	if s.ns != nil {
		s.ns.Shutdown()
		s.ns.WaitForShutdown()
	}
	if s.up != nil {
		<-s.up
	}
	if s.lock != nil {
		if err := errors.Join(unlockFile(s.lock), s.lock.Close()); err != nil {
			return fmt.Errorf("embedded server: unlock store: %w", err)
		}
	}
	if s.dir != "" {
		if err := os.RemoveAll(s.dir); err != nil {
			return fmt.Errorf("embedded server: remove the directory of the memory store: %w", err)
		}
	}
	return nil
}
