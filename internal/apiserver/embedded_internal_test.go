package apiserver

import (
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// provisioned starts a server with all streams and buckets, and connects to it.
func provisioned(t *testing.T) (*embedded.Server, *nats.Conn, subjects.Space) {
	t.Helper()
	srv, err := embedded.Start(t.Context(), embedded.Options{Listen: "127.0.0.1:0", Memory: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Stop()) })
	nc, err := srv.Conn()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	plan, err := provision.New(provision.Options{})
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, plan)
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	return srv, nc, space
}

// answering are options of a server that answers to any reply subject.
func answering(space subjects.Space, reader *query.Reader) Options {
	return Options{
		Space: space, Reader: reader, Logger: slog.New(slog.DiscardHandler),
		MayReply: func(string, string) bool { return true }, Ready: func() error { return nil },
	}
}
