package worker_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
)

const plans = `
agents: {Architect: {model: Plan}}
models: {Plan: {type: object, required: [title], properties: {title: {type: string}}}}
tools: [{name: draw, kind: go, agent: Architect, effect: none}]
`

// architect starts a worker whose workflow Plans has one agent, and Silent the same without responses to failures.
func architect(t *testing.T) (*oneturntest.Server, *oneturn.Client) {
	t.Helper()
	root := t.TempDir()
	writeFiles(t, filepath.Join(root, "Plans"), map[string]string{"oneturn.yaml": plans})
	writeFiles(t, filepath.Join(root, "Silent"), map[string]string{"oneturn.yaml": plans + "compat: {silent: true}\n"})
	s := server(t)
	draw := oneturn.NewTool("draw", func(context.Context, map[string]any) (bool, error) { return true, nil }, oneturn.ToolOptions{})
	start(t, s, oneturn.Config{Workflows: root, Tools: []oneturn.Tool{draw}})
	return s, client(t, s)
}

// textOf reads the text of a message of chat c as clients do, nil if none is stored.
func textOf(t *testing.T, s *oneturntest.Server, id string) *api.Record {
	t.Helper()
	body, err := json.Marshal(api.TurnRequest{Chat: "c", Message: id})
	require.NoError(t, err)
	m, err := s.Connect().Request("oneturn.api.acme."+api.VerbTurn, body, 10*time.Second)
	require.NoError(t, err)
	var page api.Page
	require.NoError(t, json.Unmarshal(m.Data, &page))
	for i := range page.Records {
		if page.Records[i].Kind == events.RecordText {
			return &page.Records[i]
		}
	}
	return nil
}

func TestTextOfAMessageNamesTheDataOfItsTurn(t *testing.T) {
	t.Parallel()
	s, c := architect(t)
	for id, content := range map[string]string{"m1": `Here: {"title": "Shop", "price": 1.0}`, "m2": "No plan today."} {
		m := &oneturn.Message{MessageID: oneturn.MessageID{App: "acme", Chat: "c", Message: id}, Workflow: "Plans", Agent: "Architect", Content: content}
		_, err := c.DoMessage(t.Context(), m)
		require.NoError(t, err)
		body, err := json.Marshal(api.TurnRequest{Chat: "c", Turn: id})
		require.NoError(t, err)
		reply, err := s.Connect().Request("oneturn.api.acme."+api.VerbTurn, body, 10*time.Second)
		require.NoError(t, err)
		var page api.Page
		require.NoError(t, json.Unmarshal(reply.Data, &page))
		require.Len(t, page.Records, 2)
		text := textOf(t, s, id)
		require.Equal(t, page.Records[0].Fingerprint, text.TurnFingerprint)
		require.Equal(t, "turn", text.Due)
	}
}

func TestTurnIsDueThoughAnEventOfTheProducerHasClaimedIt(t *testing.T) {
	t.Parallel()
	s, c := architect(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := c.Do(ctx, &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "acme", Chat: "c", Turn: "m1"}, Workflow: "Plans", Agent: "Architect", Model: "Plan", Data: map[string]any{"title": "Shop"},
	})
	require.NoError(t, err)
	m := &oneturn.Message{MessageID: oneturn.MessageID{App: "acme", Chat: "c", Message: "m1"}, Workflow: "Plans", Agent: "Architect", Content: `{"title": "Shop"}`}
	_, err = c.PublishMessage(ctx, m)
	require.NoError(t, err)
	requireDrained(t, s)
	require.Equal(t, "turn", textOf(t, s, "m1").Due)
	outcome, err := c.AwaitMessage(ctx, m.MessageID)
	require.NoError(t, err)
	require.Equal(t, true, outcome.Response.Payload)
}

func TestNoTurnIsDueOnceItIsKnownThatItNeverHasRecords(t *testing.T) {
	t.Parallel()
	s, c := architect(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	outcome, err := c.DoMessage(ctx, &oneturn.Message{
		MessageID: oneturn.MessageID{App: "acme", Chat: "c", Message: "m1"}, Workflow: "Silent", Agent: "Architect", Content: "No plan today.",
	})
	require.NoError(t, err, "nothing follows from it, and the wait ends")
	require.Nil(t, outcome.Response)
	require.Equal(t, "m1", outcome.Text.Turn)
	require.Empty(t, textOf(t, s, "m1").Due)
}
