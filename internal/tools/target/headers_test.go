package target_test

import (
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestCallIsNamedByHeaders(t *testing.T) {
	t.Parallel()
	got := target.Identity(&tools.Call{
		Turn: events.TurnID{App: "acme", Chat: "c 1", Turn: "t1"}, CallID: "t1@ab", Workflow: "Sales", Agent: "Closer", Name: "quote",
		IdempotencyKey: "k", FencingToken: 18446744073709551615, Epoch: 2, Attempt: 3, Depth: 2,
	})
	require.Equal(t, []target.Header{
		{"Oneturn-Idempotency-Key", "k"},
		{"Oneturn-Fencing-Token", "18446744073709551615"},
		{"Oneturn-Epoch", "2"},
		{"Oneturn-Attempt", "3"},
		{"Oneturn-Call", "t1@ab"},
		{"Oneturn-Tool", "quote"},
		{"Oneturn-Turn", "t1"},
		{"Oneturn-App", "acme"},
		{"Oneturn-Chat", "c%201"},
		{"Oneturn-Workflow", "Sales"},
		{"Oneturn-Agent", "Closer"},
		{"Oneturn-Depth", "2"},
	}, got)
}

func TestNoIDCanAddAHeader(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"plain-id_1", "a\r\nOneturn-User: root", " lead", "trail ", "tab\t", "100%", "%0d%0a", "naïve", "日本", "\x00\x7f\xff", "a:b/c?d"} {
		escaped := target.Escape(id)
		require.Equal(t, -1, strings.IndexFunc(escaped, func(r rune) bool { return r <= ' ' || r >= 0x7f }), "%q", escaped)
		back, err := url.PathUnescape(escaped)
		require.NoError(t, err)
		require.Equal(t, id, back)
	}
	require.Equal(t, "a:b/c?d", target.Escape("a:b/c?d"))
}

func TestRetryAfterIsSecondsOrADateWithinADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for text, want := range map[string]time.Duration{
			"7": 7 * time.Second, "1.5": 1500 * time.Millisecond, "0": 0, "99999999": target.MaxRetryAfter,
			at(time.Hour): time.Hour, at(-time.Hour): 0, at(1000 * time.Hour): target.MaxRetryAfter,
		} {
			wait, valid := target.RetryAfter(" " + text + " ")
			require.True(t, valid, text)
			require.Equal(t, want, wait, text)
		}
		for _, text := range []string{"", "soon", "-1", "NaN", "Inf", "0x10", "1e400"} {
			wait, valid := target.RetryAfter(text)
			require.False(t, valid, text)
			require.Zero(t, wait, text)
		}
	})
	require.Zero(t, target.RetrySeconds(math.NaN()))
	require.Zero(t, target.RetrySeconds(-1))
	require.Equal(t, target.MaxRetryAfter, target.RetrySeconds(math.Inf(1)))
}
