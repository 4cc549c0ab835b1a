package deliver_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/deliver"
	"github.com/oneturn/oneturn/oneturntest"
)

func publish(t *testing.T, nc *nats.Conn, subject string) error {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	_, err = deliver.Publish(ctx, js, &nats.Msg{Subject: subject})
	return err
}

func TestPublishOnAClosedConnectionHasStoredNothing(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	nc.Close()
	err := publish(t, nc, "a")
	require.ErrorIs(t, err, nats.ErrConnectionClosed)
	require.NotErrorIs(t, err, deliver.ErrNotAcknowledged)
}

// The server reports a denial on the connection, and not to the request.
func TestPublishThatTheServerDeniesEndsLongBeforeItsContext(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		Users: []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"a.denied"}}}}},
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(10*time.Second))
	nc, err := nats.Connect("nats://u:p@" + s.Addr().String())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	for range 2 {
		err = publish(t, nc, "a.denied")
		require.ErrorIs(t, err, nats.ErrPermissionViolation)
		require.NotErrorIs(t, err, deliver.ErrNotAcknowledged)
	}
	require.ErrorIs(t, publish(t, nc, "a.b"), jetstream.ErrNoStreamResponse)
}
