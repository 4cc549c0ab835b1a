package probes

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

type alwaysReady struct{}

func (alwaysReady) Ready() error { return nil }

// A web page whose name leads to loopback (DNS rebinding) reads neither health nor metrics.
func TestLoopbackAnswersLoopbackNamesOnly(t *testing.T) {
	t.Parallel()
	w, err := Listen("worker", "127.0.0.1:0")
	require.NoError(t, err)
	w.Serve(alwaysReady{}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	t.Cleanup(w.Close)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	address, ok := w.listener.Addr().(*net.TCPAddr)
	require.True(t, ok)
	port := address.AddrPort().Port()
	for host, want := range map[string]int{
		"": http.StatusOK, "localhost": http.StatusOK, "LOCALHOST.": http.StatusOK, "worker.localhost": http.StatusOK, "127.0.0.1:8080": http.StatusOK,
		"127.1.2.3": http.StatusOK, "[::1]": http.StatusOK, "[::1]:8080": http.StatusOK, "[::ffff:127.0.0.1]": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest, "evil.example:8080": http.StatusMisdirectedRequest, "localhost.evil.example": http.StatusMisdirectedRequest,
		"127.0.0.1.nip.io": http.StatusMisdirectedRequest, "10.0.0.1": http.StatusMisdirectedRequest, "[::]": http.StatusMisdirectedRequest,
	} {
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(int(port))+path, nil)
			require.NoError(t, err)
			r.Host = host
			answer, err := client.Do(r)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, answer.Body)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, want, answer.StatusCode, "%s of %q", path, host)
		}
	}
}

func TestOtherAddressesAnswerEveryName(t *testing.T) {
	t.Parallel()
	w := &Server{listener: anywhere{}}
	served := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://worker.pool.svc:8080/readyz", nil)
	w.local(handler(alwaysReady{}, prometheus.NewRegistry())).ServeHTTP(served, r)
	require.Equal(t, http.StatusOK, served.Code)
}

// anywhere is a listener on all addresses.
type anywhere struct{ net.Listener }

func (anywhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero} }
