package handlers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

const raceThenLast = `{"plan": {"steps": [{"id": "fan", "parallel": {"result_key": "first", "merge_strategy": "first_success", "steps": [
	{"agent_id": "one", "with": {"id": "one"}}, {"agent_id": "two", "with": {"id": "two"}}]}},
	{"id": "last", "agent": {"agent_id": "two", "with": {"id": "{{ result.first.id }}"}}}]}}`

// slowBlobs takes longer to read an output than reads may take once the worker stops.
type slowBlobs struct{ store.BlobStore }

func (b slowBlobs) Value(ctx context.Context, key subjects.Key, kind string, stored any) (any, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(1100 * time.Millisecond):
	}
	return b.BlobStore.Value(ctx, key, kind, stored)
}

// The other call succeeds although it was stopped, and its output is read after that.
func TestOutputOfACallThatWasStoppedIsRead(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if call.Args["id"] == "two" {
			<-ctx.Done()
		}
		return echo(ctx, call)
	}})
	k.Blobs = slowBlobs{k.Blobs}
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("O", raceThenLast, 1)).Do)
	require.True(t, k.response().Success, "%v", k.response())
}
