package handlers_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
)

// countedDocuments counts the requests for documents of chats.
type countedDocuments struct {
	store.Documents

	reads, writes atomic.Int64
}

func (d *countedDocuments) Read(ctx context.Context, key string) ([]byte, uint64, error) {
	d.reads.Add(1)
	return d.Documents.Read(ctx, key)
}

func (d *countedDocuments) Write(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	d.writes.Add(1)
	return d.Documents.Write(ctx, key, data, revision)
}

// costs are the requests for what is stored: records created, and documents written and read.
type costs struct{ Records, Writes, Reads int64 }

// costsOf returns what a message costs.
func (k *messageKit) costsOf(agent string, content any) costs {
	k.t.Helper()
	var records atomic.Int64
	k.checkRecords(func(*idempotency.Record) error {
		records.Add(1)
		return nil
	})
	bucket, err := store.OpenDocuments(k.t.Context(), k.js, k.space)
	require.NoError(k.t, err)
	documents := &countedDocuments{Documents: bucket}
	v := variables.NewIn(documents)
	v.Journal, k.Variables = k.Journal, v
	k.deliver("m1", agent, content)
	return costs{records.Load(), documents.writes.Load(), documents.reads.Load()}
}

// TestMessageCostsNoMoreThanItsRecords: a text is one record. Each change is one more, and all together one write of the document; a
// turn has its two; a handoff is one, decided in the write of the changes if there is no turn.
func TestMessageCostsNoMoreThanItsRecords(t *testing.T) {
	t.Parallel()
	sets := func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: json.RawMessage(`{}`), Set: map[string]any{"built": true}}, nil
	}
	const two = `
  met: {type: boolean, default: false, triggers: [{type: agent_text, agent: Interviewer, match: {contains: NEXT}}]}
`
	for name, c := range map[string]struct {
		manifest, agent string
		content         any
		tool            toolFunc
		want            costs
	}{
		"text":                           {messageWorkflow, "Interviewer", "Hello.", nothing, costs{1, 0, 0}},
		"text of a user":                 {messageWorkflow, "user", "Hello.", nothing, costs{1, 0, 0}},
		"one change":                     {messageWorkflow, "Interviewer", "NEXT", nothing, costs{2, 1, 1}},
		"two changes":                    {messageWorkflow + two, "Interviewer", "NEXT", nothing, costs{3, 1, 1}},
		"structured output":              {messageWorkflow, "Critic", `{"title":"Shop"}`, nothing, costs{2, 0, 0}},
		"turn":                           {messageWorkflow, "Architect", `{"title":"Shop"}`, nothing, costs{3, 0, 0}},
		"text and handoff":               {handoffWorkflow, "Interviewer", "Hello.", nothing, costs{2, 1, 1}},
		"change and handoff":             {handoffWorkflow, "Interviewer", "NEXT", nothing, costs{3, 1, 1}},
		"turn and handoff":               {handoffWorkflow, "Architect", `{"title":"Shop"}`, nothing, costs{4, 2, 2}},
		"turn that changes, and handoff": {handoffWorkflow, "Architect", `{"title":"Shop"}`, sets, costs{5, 3, 3}},
		"turn that changes, no handoff":  {messageWorkflow + "  built: {type: boolean, default: false}\n", "Architect", `{"title":"Shop"}`, sets, costs{4, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newMessageKit(t, map[string]string{"oneturn.yaml": c.manifest}, c.tool)
			require.Equal(t, c.want, k.costsOf(c.agent, c.content))
		})
	}
}
