package httptool_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/httptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// server is an endpoint with a certificate.
func server(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// answering is an endpoint that gives the same answer to all requests.
func answering(t *testing.T, status int, body string, headers ...string) *httptest.Server {
	t.Helper()
	return server(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header()[headers[i]] = []string{headers[i+1]}
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// at is the target of a server on this machine.
func at(s *httptest.Server) *target.HTTP {
	return &target.HTTP{URL: s.URL, Network: target.Network{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
}

func tool(t *testing.T, s *httptest.Server, to *target.HTTP) *httptool.Tool {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	made := httptool.New(to, httptool.Options{TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, MaxAnswer: maxAnswer})
	t.Cleanup(func() { require.NoError(t, made.Close(context.WithoutCancel(t.Context()))) })
	return made
}

const maxAnswer = 1 << 20

func call(args map[string]any) *tools.Call {
	return &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "chat-1", Turn: "turn-1"}, CallID: "turn-1", Workflow: "Shop", Agent: "Clerk",
		UserID: "ada", Name: "order", Args: args, IdempotencyKey: "key-1", FencingToken: 42, Epoch: 2, Attempt: 3,
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}
