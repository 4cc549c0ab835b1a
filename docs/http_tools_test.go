package docs_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/httptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// local may be called on this machine.
func local() target.Network {
	return target.Network{AllowHTTP: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

// endpoint calls a handler as a tool.
func endpoint(t *testing.T, h http.HandlerFunc, call *tools.Call) (tools.Result, error) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	tool := httptool.New(&target.HTTP{URL: s.URL, Network: local()}, httptool.Options{})
	defer func() { require.NoError(t, tool.Close(context.WithoutCancel(t.Context()))) }()
	return tool.Invoke(t.Context(), call)
}

func TestManifestOfTheHTTPPageIsSound(t *testing.T) {
	t.Parallel()
	root := folderOf(t, "http-tools.md")
	write(t, root, "Orders/shop.token", "example")
	all := load(t, root).Bindings()
	require.Len(t, all, 1)
	require.Equal(t, bindings.EffectKeyed, all[0].Effect)
	to, ok := all[0].Target.(*target.HTTP)
	require.True(t, ok)
	require.Equal(t, "PUT https://shop.example.com/v1/orders", to.Method+" "+to.URL)
	require.Equal(t, "Bearer ", to.Headers["Authorization"].Prefix)
	require.Equal(t, target.Network{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}, to.Network)
}

func TestHeadersOfTheHTTPPageAreSent(t *testing.T) {
	t.Parallel()
	call := &tools.Call{
		Turn: events.TurnID{App: "a", Chat: "c", Turn: "t"}, CallID: "t", Workflow: "w", Agent: "a", UserID: "u", Name: "n",
		IdempotencyKey: "k", FencingToken: 1, Epoch: 1, Attempt: 1, Depth: 1, Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	var got http.Header
	_, err := endpoint(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() }, call)
	require.NoError(t, err)
	named := regexp.MustCompile("`((?:Oneturn|Idempotency|X-Fencing)-[A-Za-z-]+|traceparent)`").FindAllStringSubmatch(pages(t)["http-tools.md"], -1)
	require.Greater(t, len(named), 10)
	shown := map[string]bool{"Oneturn-Timeout": true, "Oneturn-Error-Code": true} // the call has no end; an answer's
	for _, m := range named {
		if !shown[m[1]] {
			require.NotEmpty(t, got.Get(m[1]), m[1])
		}
		shown[http.CanonicalHeaderKey(m[1])] = true
	}
	for name := range got {
		if strings.HasPrefix(name, "Oneturn-") {
			require.True(t, shown[name], "the page does not document %s", name)
		}
	}
}

func TestStatusesOfTheHTTPPageMeanWhatItDocuments(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile("(?m)^\\| ([0-9, a-z]*[^|]*) \\| `([a-z_]+)` \\| (.*) \\|$").FindAllStringSubmatch(pages(t)["http-tools.md"], -1)
	require.Len(t, rows, 7)
	for _, row := range rows {
		statuses := regexp.MustCompile(`\d{3}`).FindAllString(row[1], -1)
		if len(statuses) == 0 {
			statuses = []string{"401", "404", "500", "503"}
		}
		for _, text := range statuses {
			status, err := strconv.Atoi(text)
			require.NoError(t, err)
			_, err = endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
				if strings.Contains(row[1], "Retry-After") {
					w.Header().Set("Retry-After", "1")
				}
				w.WriteHeader(status)
			}, &tools.Call{Name: "n"})
			require.Equal(t, row[2], string(events.CodeOf(err)), text)
			require.Equal(t, !strings.HasPrefix(row[3], "no"), tools.IsRetryable(err), text)
			if strings.Contains(row[3], "may have") {
				require.ErrorContains(t, err, "may or may not have happened")
			}
		}
	}
}

func TestStreamOfTheHTTPPageIsRead(t *testing.T) {
	t.Parallel()
	stream := fenced(t, "http-tools.md", "text")
	require.Len(t, stream, 1)
	host := &memhost.Host{}
	result, err := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream[0].text)
	}, &tools.Call{Name: "n", Host: host})
	require.NoError(t, err)
	require.JSONEq(t, `{"left":120}`, string(result.Value))
	require.Equal(t, []tools.Progress{{Percent: 50, Message: "counting"}}, host.Reported())
}
