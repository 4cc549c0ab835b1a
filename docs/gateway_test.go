package docs_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/oneturntest"
)

// reader may read the chats of a tenant.
type reader struct{}

func (reader) Authenticate(context.Context, auth.Request) (*auth.Identity, error) {
	return &auth.Identity{Apps: []string{"acme"}, User: "ada"}, nil
}

// TestEndpointsOfTheGatewayPageAreThere sends a request to each endpoint of the table, and one with a wrong method.
func TestEndpointsOfTheGatewayPageAreThere(t *testing.T) {
	t.Parallel()
	server := oneturntest.NewServer(t, oneturntest.Memory)
	server.Provision()
	all := &described{}
	g, err := gateway.New(t.Context(), gateway.Options{NATS: server.Connect(), Auth: reader{}, Registry: all})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	rows := regexp.MustCompile("(?m)^\\| `(GET|POST)` \\| `([^`]+)` \\|").FindAllStringSubmatch(pages(t)["gateway.md"], -1)
	require.GreaterOrEqual(t, len(rows), 6)
	call := func(method, path string) *http.Response {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
		return w.Result()
	}
	for _, row := range rows {
		path := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(strings.ReplaceAll(row[2], "{app}", "acme"), "x")
		got := call(row[1], path)
		body, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.NotContains(t, string(body), "there is no such path", path)
		require.NotEqual(t, http.StatusMethodNotAllowed, got.StatusCode, path)
		got = call(http.MethodDelete, path)
		require.NoError(t, got.Body.Close())
		require.Equal(t, http.StatusMethodNotAllowed, got.StatusCode, path)
		require.Contains(t, strings.Split(got.Header.Get("Allow"), ", "), row[1], path)
	}
	require.ElementsMatch(t, all.names, itemsOf(t, "gateway.md", "Metrics, by endpoint and code, never by chat or user:"))
}

func TestReasonsOfRefusedTokensAreAllOnTheGatewayPage(t *testing.T) {
	t.Parallel()
	_, table, found := strings.Cut(pages(t)["gateway.md"], "| reason | the token |\n|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var shown []auth.Reason
	for row := range strings.Lines(table) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			shown = append(shown, auth.Reason(name[1]))
		}
	}
	require.ElementsMatch(t, auth.Reasons(), shown)
}
