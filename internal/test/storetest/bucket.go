package storetest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/subjects"
)

// Bucket creates the bucket of a journal on a server.
func Bucket(tb testing.TB, nc *nats.Conn) subjects.Space {
	tb.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(tb, err)
	js, err := jetstream.New(nc)
	require.NoError(tb, err)
	_, err = js.CreateKeyValue(tb.Context(), jetstream.KeyValueConfig{
		Bucket:    space.TurnsBucket(),
		RePublish: &jetstream.RePublish{Source: space.JournalSubject("e.>"), Destination: space.EventsPrefix() + ".>"},
	})
	require.NoError(tb, err)
	return space
}

// Open opens the store in a bucket until the end of the test.
func Open(tb testing.TB, nc *nats.Conn, space subjects.Space) *kvstore.Store {
	tb.Helper()
	kv, err := kvstore.Open(nc, space)
	require.NoError(tb, err)
	tb.Cleanup(kv.Close)
	return kv
}
