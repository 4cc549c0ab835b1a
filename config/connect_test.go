package config_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/embedded"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// protected starts a server with user u and password CANARY.
func protected(t *testing.T) *embedded.Server {
	t.Helper()
	srv, err := embedded.Start(t.Context(), embedded.Options{Listen: "127.0.0.1:0", Memory: true, Username: "u", Password: "CANARY"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Stop()) })
	return srv
}

// contextFile writes a context of the NATS CLI.
func contextFile(t *testing.T, dir, name string, fields map[string]any) string {
	t.Helper()
	data, err := json.Marshal(fields)
	require.NoError(t, err)
	file := filepath.Join(dir, name+".json")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

func TestConnectSignsInByURLAndByContextFile(t *testing.T) {
	t.Parallel()
	srv := protected(t)
	for name, cfg := range map[string]config.NATS{
		"flags":   {URL: config.URL(srv.URL()), User: "u", Password: "CANARY"},
		"url":     {URL: config.URL(strings.Replace(srv.URL(), "nats://", "nats://u:CANARY@", 1))},
		"context": {Context: contextFile(t, t.TempDir(), "c", map[string]any{"url": srv.URL(), "user": "u", "password": "CANARY", "color_scheme": "red", "inbox_prefix": "_INBOX_x"})},
	} {
		nc, err := config.Connect(cfg, "tester", quiet())
		require.NoError(t, err, name)
		require.Equal(t, "tester", nc.Opts.Name)
		require.Equal(t, -1, nc.Opts.MaxReconnect)
		require.Equal(t, -1, nc.Opts.ReconnectBufSize)
		if name == "context" {
			require.True(t, strings.HasPrefix(nc.NewRespInbox(), "_INBOX_x."))
		}
		nc.Close()
	}
}

func TestContextIsFoundByNameInTheFolderOfTheNATSCLI(t *testing.T) {
	srv := protected(t)
	base := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", base)
	dir := filepath.Join(base, "nats", "context")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	contextFile(t, dir, "prod", map[string]any{"url": srv.URL(), "user": "u", "password": "CANARY"})
	nc, err := config.Connect(config.NATS{Context: "prod"}, "tester", quiet())
	require.NoError(t, err)
	nc.Close()

	_, err = config.Connect(config.NATS{Context: "other"}, "tester", quiet())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "--nats URL")

	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", base)
	require.NoError(t, os.MkdirAll(filepath.Join(base, ".config", "nats"), 0o700))
	require.NoError(t, os.Rename(dir, filepath.Join(base, ".config", "nats", "context")))
	nc, err = config.Connect(config.NATS{Context: "prod"}, "tester", quiet())
	require.NoError(t, err)
	nc.Close()
}

func TestContextNamesCannotLeaveTheirFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../x", "a/b", "..", ".hidden"} {
		_, err := config.Connect(config.NATS{Context: name}, "tester", quiet())
		require.ErrorContains(t, err, "neither the name of a context", name)
	}
}

func TestUnsupportedContextFieldsAreReportedTogether(t *testing.T) {
	t.Parallel()
	file := contextFile(t, t.TempDir(), "c", map[string]any{
		"nsc": "nsc://o/a/u", "user_jwt": "CANARY", "user_seed": "CANARY", "socks_proxy": "x", "jetstream_domain": "hub", "jetstream_api_prefix": "x",
	})
	_, err := config.Connect(config.NATS{Context: file}, "tester", quiet())
	for _, want := range []string{"nsc", "user_jwt", "user_seed", "socks_proxy", "jetstream_domain", "jetstream_api_prefix"} {
		require.ErrorContains(t, err, want+" is not supported")
	}
	require.NotContains(t, err.Error(), "CANARY")

	broken := filepath.Join(t.TempDir(), "b.json")
	require.NoError(t, os.WriteFile(broken, []byte(`{"password": CANARY}`), 0o600))
	_, err = config.Connect(config.NATS{Context: broken}, "tester", quiet())
	require.ErrorContains(t, err, "is not a context of the NATS CLI")
}

// talks returns the address of a server that sends something that is not NATS, and hangs up.
func talks(t *testing.T, line string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, line)
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
	})
	return l.Addr().String()
}

func TestConnectErrorsNameTheFixAndNoSecret(t *testing.T) {
	t.Parallel()
	srv := protected(t)
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	dir := t.TempDir()
	seedless := filepath.Join(dir, "seed")
	require.NoError(t, os.WriteFile(seedless, []byte("no seed"), 0o600))

	for name, tc := range map[string]struct {
		cfg  config.NATS
		want string
		is   error
	}{
		"no listener":         {config.NATS{URL: config.URL("nats://u:CANARY@" + closed.Addr().String())}, "--nats URL", nats.ErrNoServers},
		"wrong password":      {config.NATS{URL: config.URL(strings.Replace(srv.URL(), "//", "//u:CANARY2@", 1))}, "--creds FILE", nats.ErrAuthorization},
		"malformed URL":       {config.NATS{URL: "nats://u:CANARY@host:port"}, "host:port", nil},
		"quoted in the error": {config.NATS{URL: `nats://u:CANARY"3@host:port`}, "host:port", nil},
		"no port":             {config.NATS{URL: "nats://127.0.0.1:notaport"}, "write the URL as nats://HOST:PORT", nil},
		"no host":             {config.NATS{URL: "nats://nohost.invalid"}, "check the name of the host", nil},
		"other protocol":      {config.NATS{URL: config.URL("nats://" + talks(t, "SSH-2.0-OpenSSH_9.6\r\n"))}, "is not a NATS server", nil},
		"hangs up":            {config.NATS{URL: config.URL("nats://" + talks(t, ""))}, "is not a NATS server", nil},
		"no creds file":       {config.NATS{Creds: filepath.Join(dir, "none")}, "the file of --creds: stat " + filepath.Join(dir, "none"), os.ErrNotExist},
		"no seed":             {config.NATS{NKey: seedless}, "has no valid user seed", nil},
		"no CA file":          {config.NATS{TLSCA: filepath.Join(dir, "ca")}, filepath.Join(dir, "ca"), os.ErrNotExist},
		"home is not there":   {config.NATS{Context: contextFile(t, dir, "c", map[string]any{"ca": "~/no/such.pem"})}, "no/such.pem", os.ErrNotExist},
	} {
		_, err := config.Connect(tc.cfg, "tester", quiet())
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), "CANARY", name)
		if tc.is != nil {
			require.ErrorIs(t, err, tc.is, name)
		}
		require.NotContains(t, errors.Unwrap(err).Error(), "CANARY", name)
	}
}

func TestPortOfAnotherServerThatWaitsForARequestIsNamed(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = config.Connect(config.NATS{URL: config.URL("nats://" + l.Addr().String())}, "tester", quiet(), nats.Timeout(50*time.Millisecond))
	var known *config.ConnectError
	require.ErrorAs(t, err, &known)
	require.Contains(t, known.Fix, "not the one of --http")
}

func TestReconnectDelayGrowsToItsLimitAndVaries(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for attempts := range 1000 {
		delay := config.ReconnectDelay(attempts)
		require.GreaterOrEqual(t, delay, 25*time.Millisecond)
		require.LessOrEqual(t, delay, 5*time.Second)
		if attempts > 10 {
			require.GreaterOrEqual(t, delay, 2500*time.Millisecond)
		}
		seen[delay] = true
	}
	require.Greater(t, len(seen), 900)
}
