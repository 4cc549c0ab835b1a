package main

import (
	"bytes"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

func TestCommandNamesTheRightThatItLacks(t *testing.T) {
	t.Parallel()
	s, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
		Users: []*natsserver.User{{Username: "u", Password: "p", Permissions: &natsserver.Permissions{
			Publish: &natsserver.SubjectPermission{Deny: []string{"$JS.API.DIRECT.GET.>"}}, Subscribe: &natsserver.SubjectPermission{Allow: []string{"_INBOX_u.>"}},
		}}},
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(10*time.Second))
	for _, args := range [][]string{{"ls"}, {"provision"}, {"questions", "ls"}, {"dead", "ls"}} {
		var out, log bytes.Buffer
		env := func(string) (string, bool) { return "", false }
		code := execute(t.Context(), append(args, "--nats", "nats://u:p@"+s.Addr().String(), "--timeout", "300ms"), env, &out, &log)
		require.Equal(t, cli.Failed, code)
		require.Contains(t, log.String(), "set --inbox-prefix to the inbox prefix of the user", "%v", args)
	}
}
