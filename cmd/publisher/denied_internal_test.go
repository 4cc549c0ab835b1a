package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// restricted is the address of a server that lets its user act for tenant acme only, with dedicated
// inboxes.
func restricted(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		Users: []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"oneturn.in.default.*.acme.>", "oneturn.api.acme.>"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_u.>", "oneturn.>"}},
		}}},
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(10*time.Second))
	return "nats://u:p@" + s.Addr().String()
}

func TestCommandNamesTheRightThatItLacksImmediately(t *testing.T) {
	t.Parallel()
	url := restricted(t)
	const turn = `{"kind":"structured_output_ready","agent":"A","model_name":"M","auto_tool_mode":true,"turn_idempotency_key":"t","structured_data":{},` +
		`"context":{"chat_id":"c","workflow_name":"W"}}`
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"publish without app_id": {[]string{"publish", "-", "--inbox-prefix", "_INBOX_u"}, []string{"oneturn.in.default.structured_output_ready.default.W.c", "context.app_id"}},
		"answer without --app":   {[]string{"answer", "c", "t/1", "1", "--inbox-prefix", "_INBOX_u"}, []string{"oneturn.api.default.questions", "--app"}},
		"cancel without --app":   {[]string{"cancel", "--chat", "c", "--turn", "t", "--inbox-prefix", "_INBOX_u"}, []string{"oneturn.in.default.cancel.default", "--app"}},
		"no --inbox-prefix":      {[]string{"answer", "c", "t/1", "1", "--app", "acme"}, []string{"_INBOX.", "--inbox-prefix"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, log bytes.Buffer
			env := func(string) (string, bool) { return "", false }
			args := append(slices.Clone(c.args), "--nats", url, "--timeout", "1h")
			require.Equal(t, 1, run(t.Context(), args, env, strings.NewReader(turn), &out, &log))
			require.Contains(t, log.String(), "the server denies this user")
			for _, want := range c.want {
				require.Contains(t, log.String(), want)
			}
			require.NotContains(t, log.String(), "deadline")
		})
	}
}
