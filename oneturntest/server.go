package oneturntest

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/provision"
)

// Server is an embedded NATS server with JetStream for one test.
type Server struct {
	*embedded.Server

	t      testing.TB
	memory bool
}

// Memory makes [NewServer] keep streams in memory, which starts faster: for tests that stop no server.
func Memory(o *embedded.Options) { o.Memory = true }

// NewServer starts a server with file storage that stops with the test. Change may set options
// of it, for example [Memory].
func NewServer(t testing.TB, change ...func(*embedded.Options)) *Server {
	t.Helper()
	o := embedded.Options{Listen: "127.0.0.1:0", Store: t.TempDir()}
	for _, f := range change {
		f(&o)
	}
	s, err := embedded.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return &Server{Server: s, t: t, memory: o.Memory}
}

// Connect returns a connection over TCP, as a worker makes it, that closes with the test.
func (s *Server) Connect(opts ...nats.Option) *nats.Conn {
	s.t.Helper()
	nc, err := nats.Connect(s.URL(), append([]nats.Option{
		nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond),
	}, opts...)...)
	require.NoError(s.t, err)
	s.t.Cleanup(nc.Close)
	return nc
}

// Provision makes the streams, buckets and consumers of the default prefix, with an ack wait
// of one second so that redeliveries come soon.
func (s *Server) Provision(change ...func(*provision.Options)) {
	s.t.Helper()
	o := provision.Options{AckWait: time.Second, Memory: s.memory}
	for _, f := range change {
		f(&o)
	}
	plan, err := provision.New(o)
	require.NoError(s.t, err)
	js, err := jetstream.New(s.Connect())
	require.NoError(s.t, err)
	_, err = provision.Apply(s.t.Context(), js, plan)
	require.NoError(s.t, err)
}
