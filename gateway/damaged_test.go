package gateway_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/subjects"
)

func TestDamagedEventsAreLeftOutReportedAndEndNothing(t *testing.T) {
	t.Parallel()
	log, registry := &lines{}, prometheus.NewRegistry()
	g := open(t, quick, func(o *gateway.Options) {
		o.Logger, o.Registry = slog.New(slog.NewTextHandler(log, nil)), registry
	})
	harness.StartWorker(t, g.server, shop())
	g.lists(g.http.URL)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	header := nats.Header{idempotency.HeaderOwner: {"w"}, idempotency.HeaderNonce: {"n"}, idempotency.HeaderEpoch: {"1"}}
	for turn, m := range map[string]*nats.Msg{"no_header": {Data: []byte("{}")}, "not_an_object": {Data: []byte("[1"), Header: header}, "wrong_kind": {Data: []byte(`{"data":{"kind":7}}`), Header: header}} {
		m.Subject = space.JournalSubject(subjects.MessageKey("app", "c", "", turn).Public(events.RecordText))
		require.NoError(t, g.nc.PublishMsg(m))
	}
	require.NoError(t, g.nc.Flush())
	g.texts("c", 2, 10)

	var page pageOf
	g.get("ada", "/api/chats/app/c/events").into(&page)
	require.Len(t, page.Events, 2)
	s := g.run(g.http.URL, "ada", "/agui/Shop/connect", input("r", nil))
	require.Equal(t, http.StatusOK, s.status)
	messages, _ := s.until(agui.TypeMessagesSnapshot)["messages"].([]any)
	require.Len(t, messages, 2)
	_, before := g.socket("ada", "c", "").until(boundaryType) // a run begins with everything that is stored, so the socket does now
	require.Len(t, before, 2)
	require.Equal(t, 3, strings.Count(log.String(), "a stored event is damaged"), "each once")
	count, err := testutil.GatherAndCount(registry, "oneturn_gateway_damaged_records_total")
	require.NoError(t, err)
	require.Equal(t, 1, count)
}
