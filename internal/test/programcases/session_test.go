package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// runOrdinary runs a case whose turn calls its only tool, t, itself: no program is involved.
func runOrdinary(t *testing.T, text string) *Observed {
	t.Helper()
	c := caseOf(t, text)
	s, err := open(t.Context(), c, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(s.Close)
	tool := c.Tools["t"]
	entry := tool.entry("t", "go")
	delete(entry, "auto")
	entry["agent"] = callerName
	manifest, err := json.Marshal(map[string]any{"agents": map[string]any{callerName: nil}, "tools": []any{entry}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.workflows(), workflowName, "oneturn.yaml"), manifest, 0o600))
	o, problems, err := s.run(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Empty(t, o.verify(c.Expect), "a difference")
	require.Empty(t, o.unnoticed(c.Expect), "an expectation that cannot fail")
	return o
}

func TestTurnIsObservedFromItsRecordsAndRuns(t *testing.T) {
	t.Parallel()
	o := runOrdinary(t, `{"name": "t", "tools": {"t": {"behaviour": {"do": "echo"}}},
		"plan_text": "{\"n\": 12345678901234567890.10}", "actions": [{"when": "at_start", "do": "publish_again", "times": 3}],
		"expect": {
			"response": {"status": "ok", "success": true, "payload": {"n": 12345678901234567890.10}}, "calls": {"t": 1},
			"args": {"": {"n": 12345678901234567890.10}}, "numbers_as_written": true, "responses": 1, "takeovers": 0,
			"events": [["tool_call", ""], ["tool_response", ""]], "journal_records": 2, "absent": ["#0"], "peak": {"*": 1, "t": 1},
			"event_fields": {"tool_call ": {"tool_name": "t"}}, "duration_ms": {"max": 20000}, "context": {}}}`)
	require.NotEmpty(t, o.Metrics)
	require.NotEmpty(t, o.Entries[0].Key)
	require.NotZero(t, o.Entries[0].Token)
	require.False(t, o.Entries[0].To.IsZero())
}

func TestPersonAnswersWhenTheTurnIsParked(t *testing.T) {
	t.Parallel()
	runOrdinary(t, `{"name": "t", "plan": {}, "needs": ["people"],
		"tools": {"t": {"effect": "replay", "behaviour": {"do": "ask", "question": {"component": "Sure", "schema": {"type": "string"}}}}},
		"people": [{"question": "/1", "when": "parked", "answer": "yes", "expect_before": {"calls_at_most": {"t": 1}}}],
		"expect": {"response": {"success": true, "payload": {"answer": "yes"}}, "asked": ["/1"], "parked": true, "calls": {"t": 2}}}`)
}

func TestCancelIsPublishedWhenTheEventWasSeen(t *testing.T) {
	t.Parallel()
	runOrdinary(t, `{"name": "t", "plan": {}, "tools": {"t": {"behaviour": {"do": "hang"}}},
		"actions": [{"when": {"event": "tool_call", "call": ""}, "do": "cancel"}],
		"expect": {"response": {"success": false, "code": "cancelled"}, "calls_at_most": {"t": 1}, "duration_ms": {"max": 20000}}}`)
}

func TestWorkerIsKilledInTheToolAndReplaced(t *testing.T) {
	t.Parallel()
	runOrdinary(t, `{"name": "t", "plan": {"a": 1}, "needs": ["faults"],
		"tools": {"t": {"effect": "idempotent", "behaviour": {"do": "sequence", "of": [{"do": "const", "output": {"n": 1}}, {"do": "const", "output": {"n": 2}}]}}},
		"faults": [{"at": "in_tool", "call": "", "epoch": 1, "after": {"event": "tool_call", "call": ""}, "do": "kill"}],
		"expect": {"response": {"success": true, "payload": {"n": 2}}, "calls": {"t": 2}, "takeovers": 1,
			"same_idempotency_key": [""], "rising_fencing_token": [""]}}`)
}

func TestContextVariablesAreObserved(t *testing.T) {
	t.Parallel()
	runOrdinary(t, `{"name": "t", "plan": {}, "tools": {"t": {"behaviour": {"do": "set_context", "set": {"seat": "12A"}}}},
		"expect": {"response": {"success": true}, "context": {"seat": "12A"}}}`)
}

func TestWhatDidNotHappenIsReported(t *testing.T) {
	t.Parallel()
	c := caseOf(t, `{"name": "t", "people": [{"question": "#1/1", "when": "asked", "answer": 1}], "actions": [{"when": "after_end", "do": "cancel"}],
		"faults": [{"at": "in_tool", "do": "kill"}, {"at": "write_response", "do": "drop_ack"}]}`)
	p := &play{c: c, s: &session{c: c, folder: t.TempDir()}, acted: make([]bool, 1)}
	require.Equal(t, []string{
		"people: the question #1/1 was not asked", "actions: the moment of cancel did not come",
		"faults: drop_ack did not happen at write_response", "faults: workers were killed 0 times, expected 1",
	}, p.undone())
}
