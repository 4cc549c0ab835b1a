package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/test/harness"
)

func noEnv(string) (string, bool) { return "", false }

// started runs a gateway until stop, which returns its exit code.
func started(t *testing.T, args ...string) (s start, stop func() int) {
	t.Helper()
	return startedWith(t, noEnv, args...)
}

func startedWith(t *testing.T, env cli.Lookup, args ...string) (s start, stop func() int) {
	t.Helper()
	server := harness.NewServer(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	read, write := io.Pipe()
	code := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		code <- run(ctx, append([]string{"--nats", server.URL(), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "-o", "json"}, args...), env, write, &stderr)
		_ = write.Close() // a pipe never fails to
	}()
	require.NoError(t, json.NewDecoder(read).Decode(&s), "%s", &stderr)
	return s, func() int {
		cancel()
		return <-code
	}
}

func status(t *testing.T, url string, header ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got, err := client.Do(r)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	return got.StatusCode
}

func TestStartNamesTheOriginsThatMayUseTheGateway(t *testing.T) {
	t.Parallel()
	s, stop := started(t, "--dev", "--origins", "https://app.example,http://127.0.0.1:3000")
	require.Equal(t, []string{"https://app.example", "http://127.0.0.1:3000"}, s.Origins)
	var banner bytes.Buffer
	require.NoError(t, s.write("text", &banner))
	require.Contains(t, banner.String(), "  origins    its own, https://app.example, http://127.0.0.1:3000\n")
	require.Equal(t, cli.OK, stop())
	s, stop = started(t, "--dev")
	require.Empty(t, s.Origins)
	require.Equal(t, cli.OK, stop())
}

func TestGatewayServesChatsPubliclyAndItsHealthPrivately(t *testing.T) {
	t.Parallel()
	s, stop := started(t, "--dev")
	require.Equal(t, http.StatusOK, status(t, s.URL+"/api/chats/acme/c/events"))
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		require.Equal(t, http.StatusOK, status(t, s.HTTP+path), path)
		require.Equal(t, http.StatusNotFound, status(t, s.URL+path), path)
	}
	require.Equal(t, http.StatusForbidden, status(t, s.URL+"/api/chats/acme/c/events", "Origin", "https://evil.example"))
	require.Equal(t, cli.OK, stop())
}

func TestHealthCheckSucceedsWhileTheGatewayIsReady(t *testing.T) {
	t.Parallel()
	s, stop := started(t, "--dev")
	var stderr bytes.Buffer
	check := func(address string) int {
		return run(t.Context(), []string{"ready", "--http", address}, noEnv, io.Discard, &stderr)
	}
	private := strings.TrimPrefix(s.HTTP, "http://")
	require.Equal(t, cli.OK, check(private), "%s", &stderr)
	require.NotEqual(t, cli.OK, check(strings.TrimPrefix(s.URL, "http://")), "the public address has no health check")
	require.Contains(t, stderr.String(), "404")
	require.Equal(t, cli.OK, stop())
	require.NotEqual(t, cli.OK, check(private))
	require.Contains(t, stderr.String(), "no gateway at "+private)
	require.Equal(t, cli.Usage, check("nowhere at all"))
}

func TestGatewayWhoseIssuerHasNoKeysIsNotReady(t *testing.T) {
	t.Parallel()
	issuer := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(issuer.Close)
	s, stop := started(t, "--jwks", issuer.URL+"/keys", "--issuer", "https://issuer.example", "--audience", "oneturn")
	require.Equal(t, http.StatusServiceUnavailable, status(t, s.HTTP+"/readyz"))
	var banner, stderr bytes.Buffer
	require.NoError(t, s.write("text", &banner))
	require.Contains(t, banner.String(), "oneturn gateway is started, and not ready: the keys of tokens")
	require.NotEqual(t, cli.OK, run(t.Context(), []string{"ready", "--http", strings.TrimPrefix(s.HTTP, "http://")}, noEnv, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "keys of tokens", "it has the reason")
	require.Equal(t, cli.OK, stop())
}

func TestSpansOfTheGatewayAreExportedToTheCollector(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			got <- r.URL.Path + " " + string(body)
		}
	}))
	t.Cleanup(collector.Close)
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
	s, stop := startedWith(t, func(name string) (string, bool) { value, ok := env[name]; return value, ok }, "--dev")
	require.Equal(t, collector.URL+"/v1/traces", s.Traces)
	require.Equal(t, http.StatusOK, status(t, s.URL+"/api/chats/acme/canary/events"))
	require.Equal(t, cli.OK, stop())
	spans := <-got
	require.Contains(t, spans, "/v1/traces ")
	require.Contains(t, spans, "oneturn-gateway")
	require.Contains(t, spans, "gateway events")
	require.NotContains(t, spans, "canary")
}

func TestStaticTokenOpensTheChatsOfItsTenant(t *testing.T) {
	t.Parallel()
	token := auth.NewToken()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	require.NoError(t, os.WriteFile(file, []byte("- {sha256: "+auth.HashToken(token)+", app: acme, user: ada}\n"), 0o600))
	s, stop := started(t, "--tokens", file)
	require.Equal(t, http.StatusOK, status(t, s.URL+"/api/chats/acme/c/events", "Authorization", "Bearer "+token))
	require.Equal(t, http.StatusForbidden, status(t, s.URL+"/api/chats/other/c/events", "Authorization", "Bearer "+token))
	require.Equal(t, http.StatusUnauthorized, status(t, s.URL+"/api/chats/acme/c/events"))
	require.Equal(t, cli.OK, stop())
}

func TestGatewayDoesNotStartWithoutADecisionWhoMayUseIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "nothing decides who may use the gateway"},
		{[]string{"--dev", "--tokens", "x"}, "mutually exclusive"},
		{[]string{"--jwks", "https://issuer.example/jwks"}, "--issuer and --audience"},
		{[]string{"--dev", "--listen", "0.0.0.0:8090"}, "--dev: the gateway would accept"},
		{[]string{"--tokens", "missing.yaml"}, "--tokens"},
		{[]string{"--dev", "--origins", "*"}, "--origins"},
		{[]string{"serve"}, "takes no arguments"},
	} {
		var stderr bytes.Buffer
		require.Equal(t, cli.Usage, run(t.Context(), c.args, noEnv, io.Discard, &stderr), "%v", c.args)
		require.Contains(t, stderr.String(), c.want)
	}
}

func TestConnectionTooManyIsRefusedUntilAnotherOneEnds(t *testing.T) {
	t.Parallel()
	s, stop := started(t, "--dev", "--max-connections", "2")
	address := strings.TrimPrefix(s.URL, "http://")
	var idle []net.Conn
	for range 2 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		idle = append(idle, conn)
	}
	require.Equal(t, http.StatusServiceUnavailable, status(t, s.URL+"/api/chats/acme/c/events"))
	require.NoError(t, idle[0].Close())
	require.Eventually(t, func() bool { return status(t, s.URL+"/api/chats/acme/c/events") == http.StatusOK }, 10*time.Second, 20*time.Millisecond)
	require.NoError(t, idle[1].Close())
	require.Equal(t, cli.OK, stop())
}
