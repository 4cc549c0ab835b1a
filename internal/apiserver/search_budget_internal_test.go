package apiserver

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/searchbudget"
)

// wildRequests are those that have the server go through the names of a chat or a tenant.
var wildRequests = map[string][]string{
	api.VerbQuestions: {
		`{}`, `{"from":5}`, `{"chat_id":"c"}`, `{"chat_id":"c","from":5}`, `{"chat_id":"c","tool_call_id":"x@00000000/1"}`,
		`{"chat_id":"c","tool_call_id":"x@00000000/1","run_id":"r"}`,
	},
	api.VerbAnswer:  {`{"chat_id":"c","tool_call_id":"x@00000000/1","value":1}`},
	api.VerbHistory: {`{"chat_id":"c"}`, `{"chat_id":"c","from":5}`},
}

// H24: a budget that is used up is asked for before the first search, by whichever request.
func TestRequestsOfATenantWithoutBudgetHaveNothingSearched(t *testing.T) {
	t.Parallel()
	srv, nc, space := provisioned(t)
	kv, err := kvstore.Open(nc, space)
	require.NoError(t, err)
	t.Cleanup(kv.Close)
	budget := searchbudget.New(nil, nil)
	a, err := Serve(nc, answering(space, query.New(nc, space, kv, budget)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Stop()) })

	require.NoError(t, budget.Do(t.Context(), "acme", func() error { <-time.After(searchbudget.Burst + 100*time.Millisecond); return nil }))
	client, err := srv.Conn()
	require.NoError(t, err)
	t.Cleanup(client.Close)
	watch, err := client.SubscribeSync("$JS.API.STREAM.>")
	require.NoError(t, err)
	require.NoError(t, client.Flush())
	ask := func(app, verb, body string) *nats.Msg {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		m, err := client.RequestWithContext(ctx, space.API(app, verb), []byte(body))
		require.NoError(t, err)
		return m
	}
	for verb, bodies := range wildRequests {
		for _, body := range bodies {
			m := ask("acme", verb, body)
			require.Equal(t, codeBusy, m.Header.Get(micro.ErrorCodeHeader), "%s %s", verb, body)
			require.NotEmpty(t, m.Header.Get(headerRetryAfter))
			require.NoError(t, nc.Flush())
			require.NoError(t, client.Flush())
			n, _, err := watch.Pending()
			require.NoError(t, err)
			require.Zero(t, n, "%s %s", verb, body)
		}
	}
	for verb, bodies := range wildRequests {
		for _, body := range bodies {
			require.Empty(t, ask("beta", verb, body).Header.Get(micro.ErrorCodeHeader), "another tenant: %s %s", verb, body)
		}
	}
	n, _, err := watch.Pending()
	require.NoError(t, err)
	require.NotZero(t, n, "the test sees what is searched")
}
