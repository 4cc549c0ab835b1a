package gateway_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/provision"
)

func TestPagesOfHistoriesAreCountedByTheStreamThatHadThem(t *testing.T) {
	t.Parallel()
	g, _, registry := watched(t)
	stop := g.runWorker()
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 30}))
	stop()
	pages := func(path string) (mirror, journal int) {
		g.get("ada", path)
		counts := counted(t, registry, "oneturn_gateway_history_pages_total")
		return counts["mirror"], counts["journal"]
	}
	mirror, journal := pages("/api/chats/app/c/events")
	require.Zero(t, mirror, "there is none")
	require.Positive(t, journal)

	plan, err := provision.New(provision.Options{ReadMirror: true})
	require.NoError(t, err)
	js, err := jetstream.New(g.nc)
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, plan)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		mirror, _ = pages("/api/chats/app/c/events")
		return mirror > 0
	}, 30*time.Second, 100*time.Millisecond, "it is found within ten seconds")
	_, journal = pages("/api/chats/app/c/events")
	again, same := pages("/api/chats/app/c/events")
	require.Greater(t, again, mirror)
	require.Equal(t, journal, same)
}
