package gateway_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
)

// as makes a provisioned server with a user that may subscribe to these subjects and its inboxes, and returns a connection of it.
func as(t *testing.T, subscribe string) *nats.Conn {
	t.Helper()
	file := filepath.Join(t.TempDir(), "accounts.conf")
	require.NoError(t, os.WriteFile(file, []byte(`accounts { ONETURN { jetstream: enabled, users: [
  { user: admin, password: admin }
  { user: u, password: u, permissions: { publish: ">", subscribe: ["_INBOX.>", `+subscribe+`] } }
] } }`), 0o600))
	s := oneturntest.NewServer(t, func(o *embedded.Options) { o.Accounts, o.Account = file, "ONETURN" })
	plan, err := provision.New(provision.Options{})
	require.NoError(t, err)
	js, err := jetstream.New(s.Connect(nats.UserInfo("admin", "admin")))
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, plan)
	require.NoError(t, err)
	return s.Connect(nats.UserInfo("u", "u"))
}

// opened starts a gateway of a connection, and returns its log.
func opened(t *testing.T, nc *nats.Conn) (*gateway.Gateway, *harness.Output) {
	t.Helper()
	log := &harness.Output{}
	g, err := gateway.New(t.Context(), gateway.Options{NATS: nc, Auth: people(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g, log
}

func TestGatewayOfAUserWithoutItsRightsIsNotReadyAndNamesTheRight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ may, right string }{
		{`"oneturn.gateway.>"`, "oneturn.live.>"},
		{`"oneturn.live.>"`, "oneturn.gateway.stop"},
	} {
		t.Run(c.right, func(t *testing.T) {
			t.Parallel()
			nc := as(t, c.may)
			g, log := opened(t, nc)
			denied := func() bool {
				err := g.Ready()
				return err != nil && strings.Contains(err.Error(), "denies this user to subscribe to "+c.right+": connect as the user gateway")
			}
			require.Eventually(t, denied, 10*time.Second, 10*time.Millisecond)
			lines := func() int { return strings.Count(log.String(), `right="subscribe to `+c.right+`"`) }
			require.Equal(t, 1, lines(), "%s", log)

			require.NoError(t, nc.ForceReconnect()) // which subscribes again
			require.Eventually(t, func() bool { return lines() == 2 && denied() }, 10*time.Second, 10*time.Millisecond, "%s", log)
		})
	}
}

func TestGatewayOfAUserWithItsRightsIsReady(t *testing.T) {
	t.Parallel()
	g, log := opened(t, as(t, `"oneturn.live.>", "oneturn.gateway.>"`))
	require.Eventually(t, func() bool { return g.Ready() == nil }, 10*time.Second, 10*time.Millisecond)
	require.NotContains(t, log.String(), "denies")
}
