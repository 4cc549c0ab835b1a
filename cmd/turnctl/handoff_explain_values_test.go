package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// explained explains the handoff of a message of chat c.
func (v *interview) explained(id string, more ...string) explanation {
	v.Helper()
	return decode[explanation](v.T, v.Server, append([]string{"handoff", "explain", "c", id, "--workflows", v.workflows}, more...)...)
}

// document opens the context variables, as workers write them.
func (v *interview) document() *variables.Variables {
	v.Helper()
	js, err := jetstream.New(v.Connect())
	require.NoError(v, err)
	docs, err := store.OpenDocuments(v.Context(), js, mustSpace(v.T))
	require.NoError(v, err)
	return variables.NewIn(docs)
}

func TestExplainMarksAValueThatAnEarlierMessageHasSetLater(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m0", "Interviewer", "Hello.")
	v.publish("m1", "Interviewer", "What shall I build?")
	seq := v.explained("m1").Handoff.Seq - 2 // before the text of m1
	next := []bindings.Step{{Variable: "done", Value: true}}
	_, err := v.document().Apply(t.Context(), events.DefaultApp, "c", variables.Message{ID: "late", Seq: seq, Agent: "Interviewer", Steps: next})
	require.NoError(t, err)
	v.publish("m2", "Interviewer", "And then?")

	late := v.explained("m1")
	require.Equal(t, seq, late.Variables[0].Record)
	require.False(t, late.Variables[0].Seen)
	require.Contains(t, late.Variables[0].AsOf, "has set it since")
	require.False(t, late.Same)
	require.Equal(t, "user", *late.Handoff.To)
	after := v.explained("m2")
	require.True(t, after.Variables[0].Seen, "of a later message the same value is")
	require.True(t, after.Same)
}

func TestExplainMarksAValueOfATurnThatHasEndedAfterTheHandoff(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	journal, err := kvstore.Open(v.Connect(), mustSpace(t))
	require.NoError(t, err)
	t.Cleanup(journal.Close)
	turn := subjects.TurnKey(events.DefaultApp, "c", "", "other")
	v.publish("m0", "Interviewer", "Hello.")
	delta, err := journal.Create(t.Context(), idempotency.Record{Key: turn.Private(events.RecordDelta, "1"), Data: []byte("{}")})
	require.NoError(t, err)
	v.publish("m1", "Interviewer", "What shall I build?")
	_, err = journal.Create(t.Context(), idempotency.Record{Key: turn.Public(events.RecordResponse), Data: []byte("{}")})
	require.NoError(t, err)
	require.NoError(t, v.document().Merge(t.Context(), events.DefaultApp, "c", delta, variables.Delta{Set: map[string]any{"done": true}}))
	v.publish("m2", "Interviewer", "And then?")

	during := v.explained("m1")
	require.Equal(t, delta, during.Variables[0].Record)
	require.False(t, during.Variables[0].Seen)
	require.Contains(t, during.Variables[0].AsOf, "has set it since")
	require.True(t, v.explained("m2").Variables[0].Seen)
}

func TestExplainTriesTheRulesWithTheSnapshotOfTheProducer(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	m := &oneturn.Message{MessageID: oneturn.MessageID{Chat: "c", Message: "m1"}, Workflow: "Interviews", Agent: "Interviewer", Content: "Hello."}
	m.ContextVariables = map[string]any{"done": true}
	_, err := v.client.DoMessage(t.Context(), m)
	require.NoError(t, err)
	without := v.explained("m1")
	require.False(t, without.Same)
	require.Contains(t, without.Variables[0].AsOf, "unless the producer has sent another")
	require.Contains(t, strings.Join(without.Notes, "\n"), "name them with --snapshot")

	file := filepath.Join(t.TempDir(), "sent.json")
	data, err := json.Marshal(m.ContextVariables)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	with := v.explained("m1", "--snapshot", file)
	require.True(t, with.Same)
	require.Equal(t, "Architect", *with.Now.To)
	require.Equal(t, "of the snapshot of the producer", with.Variables[0].AsOf)
	require.Empty(t, with.Notes)

	require.NoError(t, os.WriteFile(file, []byte("[1]"), 0o600))
	code, _, stderr := turnctl(t, v.Server, "handoff", "explain", "c", "m1", "--snapshot", file)
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "handoff explain: the context must be a JSON object")
}

func TestExplainReadsATextThatIsStoredInABlob(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Speaker", longText)
	e := v.explained("m1")
	require.Empty(t, e.Notes)
	require.True(t, e.Same)
	require.Equal(t, handoff.OutcomeApplies, e.Rules[0].Outcome, "its trigger is the whole text")
}
