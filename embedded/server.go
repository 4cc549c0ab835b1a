package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/internal/pause"
)

// Start, restart and stop of the server. The store is locked first and unlocked last; a server that lacks streams
// of its store (store_check.go) is stopped again before it takes connections.

// ErrPortInUse means that something else listens on the wanted address.
var ErrPortInUse = errors.New("the address is in use")

// Server is a running embedded server. Its methods are safe for concurrent use.
type Server struct {
	lock *os.File // nil with Options.Memory
	dir  string   // to remove at the end, only with Options.Memory
	auth []nats.Option
	stop func() error

	accounts     string // file, "" for none
	account      string // of Conn
	user         string // of Conn in that account
	password     string
	store        string // directory
	maxStore     int64  // bytes to store, 0 for what the disk has room for
	free         func(dir string) (int64, error)
	minFree      int64 // bytes of room that a store has at least, and that it is reopened for
	log          *serverLog
	stopWatching context.CancelFunc // nil with Options.Memory
	watching     sync.WaitGroup

	opening sync.Mutex     // held while a server starts or ends
	options server.Options // with the port that it got
	up      chan struct{}  // closed when the server's start has returned
	ended   bool           // for good
	ns      atomic.Pointer[server.Server]
	ready   atomic.Bool // takes connections
}

// Start runs a server and returns when it takes connections. ctx bounds the start only;
// call [Server.Stop] to end the server. Errors are [ErrLocked], [ErrPortInUse], [ErrIncomplete]
// or name the option to fix.
func Start(ctx context.Context, opts Options) (*Server, error) {
	return (&Server{free: freeBytes, minFree: reopenRoom}).open(ctx, opts)
}

func (s *Server) open(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	host, port, err := opts.address()
	if err != nil {
		return nil, err
	}
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
	s.opening.Lock()
	defer s.opening.Unlock()
	s.options = server.Options{
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
	}
	if s.accounts = opts.Accounts; s.accounts != "" {
		s.account = opts.Account
	}
	s.store, s.maxStore, s.log = opts.Store, opts.MaxStore, &serverLog{log: opts.Logger, fatal: make(chan error, 1)}
	if err := s.startServer(ctx); err != nil {
		return err
	}
	ns := s.ns.Load()
	if at, ok := ns.Addr().(*net.TCPAddr); ok {
		s.options.Port = at.Port
	}
	if !opts.Memory {
		watch, stop := context.WithCancel(context.WithoutCancel(ctx))
		s.stopWatching = stop
		s.watching.Go(func() { s.watchFull(watch) })
	}
	return nil
}

// startServer makes a server and returns when it takes connections. The caller holds opening.
func (s *Server) startServer(ctx context.Context) error {
	if err := s.limit(); err != nil {
		return err
	}
	options := s.options // the server fills in what is left open
	if err := s.signIn(&options); err != nil {
		return err
	}
	listen := net.JoinHostPort(options.Host, strconv.Itoa(max(options.Port, 0)))
	ns, err := server.NewServer(&options)
	if err != nil {
		return fmt.Errorf("embedded server: configure: %w", err)
	}
	s.ns.Store(ns)
	ns.SetLoggerV2(s.log, false, false, false)
	up := make(chan struct{})
	s.up = up
	go func() {
		defer close(up)
		ns.Start() // opens the store: takes as long as it is large
	}()
	if err := s.await(ctx, listen); err != nil {
		return err
	}
	if err := s.complete(ns); err != nil {
		return err
	}
	s.ready.Store(true)
	return nil
}

// endServer ends the server, if there is one, and waits until it has written everything. The caller
// holds opening.
func (s *Server) endServer() {
	s.ready.Store(false)
	if ns := s.ns.Load(); ns != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
		<-s.up
	}
}

// await waits until the server takes connections, gives up or ctx ends.
func (s *Server) await(ctx context.Context, listen string) error {
	const step = 2 * time.Millisecond
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
		// ReadyForConnections spins when it waits for less than 25 ms, so it is called only once the server listens.
		if s.ns.Load().Addr() != nil && s.ns.Load().ReadyForConnections(step) {
			break
		}
		_ = pause.For(ctx, step) // the end of ctx is seen above
		if time.Now().After(deadline) {
			return fmt.Errorf("embedded server: start on %s: not ready after %s, see its warnings in the log", listen, startTimeout)
		}
	}
	if !s.ns.Load().JetStreamEnabled() {
		return fmt.Errorf("embedded server: start on %s: JetStream is off, see the server's errors in the log; is the store readable?", listen)
	}
	return nil
}

// URL returns the address for clients outside the process, without user and password.
func (s *Server) URL() string { return s.ns.Load().ClientURL() }

// SyncAlways reports whether the server writes every record through to the disk, for the
// durability tier.
func (s *Server) SyncAlways() bool { return s.options.SyncAlways }

// Conn connects within the process, without TCP, as a separate user with a random password. No other user
// may listen at its inboxes: with a file of accounts they are the inboxes of workers
// ([subjects.WorkerInboxes]), to which the file gives no other role a right. The caller closes the
// connection, before [Server.Stop].
func (s *Server) Conn(opts ...nats.Option) (*nats.Conn, error) {
	all := slices.Concat([]nats.Option{nats.InProcessServer(provider{s})}, opts, s.auth)
	nc, err := nats.Connect("", all...)
	if err != nil {
		return nil, fmt.Errorf("embedded server: connect within the process: %w", err)
	}
	return nc, nil
}

// provider makes connections within the process, also to a server that came after another.
type provider struct{ *Server }

// InProcessConn implements [nats.InProcessConnProvider].
func (p provider) InProcessConn() (net.Conn, error) {
	if !p.ready.Load() { // a server that opens its store does not know yet what it has
		return nil, errors.New("embedded server: it opens its store")
	}
	return p.ns.Load().InProcessConn() //nolint:wrapcheck // for the client
}

// Stop ends the server, waits until it has written everything, and unlocks the store.
// Further calls return the same result.
func (s *Server) Stop() error { return s.stop() }

// shutdown is the one run of Stop.
func (s *Server) shutdown() error {
	if s.stopWatching != nil {
		s.stopWatching()
		s.watching.Wait()
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	s.ended = true
	s.endServer()
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
