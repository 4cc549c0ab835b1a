package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/accounts"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// waiting is a gateway that is started before what it needs.
type waiting struct {
	*testing.T

	http   string
	start  chan start
	code   chan int
	stderr harness.Output
	stop   context.CancelFunc
}

func startEarly(t *testing.T, url string, args ...string) *waiting {
	t.Helper()
	w := &waiting{T: t, http: "http://" + harness.FreeAddresses(t, 1)[0], start: make(chan start, 1), code: make(chan int, 1)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w.stop = cancel
	read, write := io.Pipe()
	go func() {
		all := append([]string{"--nats", url, "--dev", "--listen", "127.0.0.1:0", "--http", strings.TrimPrefix(w.http, "http://"), "-o", "json"}, args...)
		w.code <- run(ctx, all, noEnv, write, &w.stderr)
		_ = write.Close() // a pipe never fails to
	}()
	go func() {
		var s start
		if json.NewDecoder(read).Decode(&s) == nil {
			w.start <- s
		}
	}()
	t.Cleanup(cancel)
	return w
}

// reports waits until the gateway is not ready for a reason.
func (w *waiting) reports(reason string) {
	w.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	last := ""
	require.Eventually(w, func() bool {
		r, err := http.NewRequestWithContext(w.Context(), http.MethodGet, w.http+"/readyz", nil)
		require.NoError(w, err)
		got, err := client.Do(r)
		if err != nil {
			return false // not served yet
		}
		defer got.Body.Close()
		body, err := io.ReadAll(got.Body)
		require.NoError(w, err)
		last = string(body)
		return got.StatusCode == http.StatusServiceUnavailable && strings.Contains(last, reason)
	}, 20*time.Second, 20*time.Millisecond, "%s", reason)
}

func TestGatewayThatStartsFirstWaitsForTheServerAndItsStreams(t *testing.T) {
	t.Parallel()
	at := harness.FreeAddresses(t, 1)[0]
	w := startEarly(t, "nats://"+at)
	w.reports("waiting for the NATS server")
	server := oneturntest.NewServer(t, func(o *embedded.Options) { o.Listen = at })
	w.reports("missing streams: KV_ONETURN_TURNS, KV_ONETURN_WORKFLOWS")
	server.Provision()
	s := <-w.start
	require.Equal(t, http.StatusOK, status(t, s.HTTP+"/readyz"))
	require.Equal(t, http.StatusOK, status(t, s.URL+"/api/chats/acme/c/events"))
	for _, once := range []string{`for="the NATS server"`, `for="its streams"`} {
		require.Equal(t, 1, strings.Count(w.stderr.String(), once), "%s", &w.stderr)
	}
	w.stop()
	require.Equal(t, cli.OK, <-w.code)
}

func TestGatewayThatIsStoppedWhileItWaitsEnds(t *testing.T) {
	t.Parallel()
	w := startEarly(t, oneturntest.NewServer(t).URL())
	w.reports("waiting for its streams")
	w.stop()
	require.Equal(t, cli.OK, <-w.code)
	require.Contains(t, w.stderr.String(), "stopped before it had begun")
}

func TestWaitForStreamsEndsWithTheFix(t *testing.T) {
	t.Parallel()
	server := oneturntest.NewServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), startPause+startPause/2)
	defer cancel()
	nc := server.Connect()
	_, err := (&starting{logger: slog.New(slog.DiscardHandler)}).open(ctx, gateway.Options{NATS: nc, Prefix: subjects.DefaultPrefix, Auth: auth.Chain{}})
	require.ErrorIs(t, err, errNotReady)
	require.EqualError(t, err, "the server is not ready for gateways (missing streams: KV_ONETURN_TURNS, KV_ONETURN_WORKFLOWS, KV_ONETURN_CONTEXT, OBJ_ONETURN_BLOBS): "+
		"run `turnctl provision` or start a worker with an embedded server")
}

// withAccounts is a provisioned server with the users of `turnctl nats-config`, whose passwords are their names.
func withAccounts(t *testing.T) *oneturntest.Server {
	t.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	all, err := accounts.New(accounts.Options{Space: space, Tenants: []string{"acme"}})
	require.NoError(t, err)
	text := accounts.Config(all)
	for _, a := range all {
		for _, u := range a.Users {
			text = strings.ReplaceAll(text, "$"+accounts.Password(u)+",", strconv.Quote(u.Name)+",")
		}
	}
	file := filepath.Join(t.TempDir(), "accounts.conf")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return oneturntest.NewServer(t, func(o *embedded.Options) { o.Accounts, o.Account = file, space.Account() })
}

func TestUserOfTheGatewayWithoutItsInboxPrefixIsNamedTheFix(t *testing.T) {
	t.Parallel()
	server := withAccounts(t)
	w := startEarly(t, strings.Replace(server.URL(), "://", "://gateway:gateway@", 1))
	require.Equal(t, cli.Failed, <-w.code)
	require.Contains(t, w.stderr.String(), "set --inbox-prefix to the inbox prefix of the user")
}
