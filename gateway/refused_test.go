package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
)

// refuser refuses each token for the reason that it names.
type refuser struct{}

func (refuser) Authenticate(_ context.Context, r auth.Request) (*auth.Identity, error) {
	e := &auth.Error{Code: auth.CodeTokenInvalid, Msg: "no", Reason: auth.Reason(r.Token)}
	if e.Reason == auth.ReasonExpired {
		e.Code = auth.CodeTokenExpired
	}
	return nil, e
}

// watched is a gateway with its log and metrics.
func watched(t *testing.T, change ...func(*gateway.Options)) (g *gate, log *lines, registry *prometheus.Registry) {
	t.Helper()
	log, registry = &lines{}, prometheus.NewRegistry()
	g = open(t, append(change, func(o *gateway.Options) {
		o.Logger, o.Registry = slog.New(slog.NewTextHandler(log, nil)), registry
	})...)
	return g, log, registry
}

// counted is the value of a counter, by its labels as text.
func counted(t *testing.T, registry *prometheus.Registry, name string) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	found := map[string]int{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			found[strings.Join(labels, " ")] = int(m.GetCounter().GetValue())
		}
	}
	return found
}

func TestRefusedTokensAreCountedAndLoggedByReasonWithoutThem(t *testing.T) {
	t.Parallel()
	g, log, registry := watched(t, func(o *gateway.Options) { o.Auth = refuser{} })
	for range 3 {
		require.Equal(t, http.StatusUnauthorized, g.get("audience", "/api/chats/app/c/events").status)
	}
	g.get("expired", "/api/chats/app/c/events")
	s, refused := g.dial("signature", "/ws/Shop/app/c/ada")
	require.Zero(t, refused)
	s.closed()
	for i := range 50 {
		g.get(fmt.Sprint("made-up-", i), "/api/chats/app/c/events")
	}
	got := counted(t, registry, "oneturn_gateway_tokens_refused_total")
	require.Len(t, got, len(auth.Reasons()), "all reasons, and no other")
	require.Equal(t, 3, got["audience"])
	require.Equal(t, 1, got["expired"])
	require.Equal(t, 1, got["signature"])
	require.Equal(t, 50, got["other"])
	text := log.String()
	require.Equal(t, 1, strings.Count(text, `level=WARN msg="a token is refused" reason=audience problem=no`), text)
	require.Equal(t, 1, strings.Count(text, `level=INFO msg="a token is refused" reason=expired`), "expired tokens are usual")
	require.Equal(t, 1, strings.Count(text, "reason=signature"), text)
	require.Equal(t, 1, strings.Count(text, "reason=other"), text)
	require.NotContains(t, text, "made-up")
}

func TestOriginThatIsNotAllowedIsNamedWithTheFlagThatAllowsIt(t *testing.T) {
	t.Parallel()
	g, log, registry := watched(t)
	const page = "https://new.example"
	for range 3 {
		_, refused := g.dial("ada", "/ws/Shop/app/c/ada", "Origin", page)
		require.Equal(t, http.StatusForbidden, refused)
	}
	require.Equal(t, 1, strings.Count(log.String(), "origin="+page), log)
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "add the origin to --origins")
	preflight := []string{"Access-Control-Request-Method", "POST", "Origin"}
	g.do(http.MethodOptions, "", "/agui/Shop", nil, append(preflight, "http://localhost:3000")...)
	require.Contains(t, log.String(), "origin=http://localhost:3000", "a preflight as well")
	g.do(http.MethodOptions, "", "/agui/Shop", nil, append(preflight, "https://app.example")...)
	g.get("ada", "/api/chats/app/c/events")
	require.NotContains(t, log.String(), "origin=https://app.example")

	for i := range 1_000 {
		g.get("ada", "/api/chats/app/c/events", "Origin", fmt.Sprintf("https://%d.evil.example", i))
	}
	require.Equal(t, 10, strings.Count(log.String(), "add the origin to --origins"), "of made-up origins ten are logged in a minute")
	require.Equal(t, 1_004, counted(t, registry, "oneturn_gateway_origins_refused_total")[""])
	series, err := testutil.GatherAndCount(registry, "oneturn_gateway_origins_refused_total")
	require.NoError(t, err)
	require.Equal(t, 1, series)
}
