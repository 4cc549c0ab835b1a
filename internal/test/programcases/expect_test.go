package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEachExpectationOfTheCasesIsKnownAndCanFail(t *testing.T) {
	t.Parallel()
	nothing := &Observed{}
	for _, c := range shared(t) {
		for key, changed := range falsified(c.Expect) {
			require.Contains(t, checks, key, c.Name)
			if key != "asked_once" { // its value does not count
				require.NotEqual(t, c.Expect[key], changed[key], "%s: %s", c.Name, key)
			}
		}
		require.NotEmpty(t, nothing.verify(c.Expect), c.Name)
	}
	require.Equal(t, []string{"unknown expectation mood"}, nothing.verify(map[string]any{"mood": "good"}))
}

// expected returns expectations of a text.
func expected(t *testing.T, text string) map[string]any {
	t.Helper()
	v, ok := tree(json.RawMessage(text)).(map[string]any)
	require.True(t, ok, text)
	return v
}

func TestExpectationsThatAreMetAndThatAreNot(t *testing.T) {
	t.Parallel()
	at := time.Now()
	payload := expected(t, `{"status": "failed", "halted": true, "halt_reason": "no stock", "skipped": ["2"], "feedback": "did you mean find?",
		"results": [{"call": "0", "output": {"n": 1.0}, "success": true, "attempts": 1}], "bindings": {"a": 1},
		"errors": [{"tool_index": 1, "path": "/x", "error": {"type": "f", "available_fields": ["b", "a"]}}]}`)
	o := &Observed{
		Response: map[string]any{"status": "error", "payload": payload, "content": "it failed"},
		Events:   []Event{{Kind: "tool_call"}, {Kind: "tool_call", Call: "#0"}, {Kind: "tool_response", Call: "#0", Data: map[string]any{"artifact_id": "a1"}}},
		Entries: []Entry{
			{Call: "0", Tool: "a", Args: expected(t, `{"n": 1}`), Key: "k", Token: 1, From: at, To: at.Add(time.Second)},
			{Call: "0", Tool: "a", Key: "k", Token: 2, From: at.Add(time.Second / 2)},
			{Call: "1", Tool: "b", From: at.Add(2 * time.Second)},
		},
		Ended: 1, Asked: []string{"#0/1"}, AskCount: map[string]int{"#0/1": 1}, Took: 50 * time.Millisecond,
		Live: []any{map[string]any{"kind": "progress"}}, Metrics: "oneturn_programs_total{} 1",
	}
	for _, met := range []string{
		`{"status": "failed"}`, `{"response": {"status": "error", "content_contains": "failed"}}`,
		`{"response": {"content_contains": ["it", "failed"]}}`, `{"halted": true}`, `{"skipped": ["2"]}`,
		`{"halt_reason_contains": "stock"}`, `{"feedback_contains": ["find"]}`, `{"results": [{"call": "0", "output": {"n": 1}}]}`,
		`{"bindings": {"a": 1}}`, `{"errors": [{"path": "/x", "rule": "what is meant", "error": {"available_fields": ["a", "b"]}}]}`,
		`{"calls": {"a": 2, "b": 1}}`, `{"calls_at_least": {"a": 1, "b": 1}}`, `{"calls_at_most": {"a": 2, "b": 3}}`,
		`{"order": [["0", "0"], "1"]}`, `{"args": {"0": {"n": 1.0}}}`, `{"peak": {"*": 2, "b": 1}}`,
		`{"events": [["tool_call", ""], ["tool_call", "#0"], ["tool_response", "#0"]]}`, `{"events_first": [["tool_call", ""]]}`,
		`{"events_last": [["tool_response", "#0"]]}`, `{"events_unordered": [["tool_call", "#0"], ["tool_call", ""], ["tool_response", "#0"]]}`,
		`{"absent": ["#2"]}`, `{"responses": 1}`, `{"same_idempotency_key": ["0"], "rising_fencing_token": ["0"]}`, `{"asked": ["#0/1"]}`,
		`{"duration_ms": {"min": 10, "max": 60}}`, `{"live": [{"kind": "progress"}]}`, `{"metrics": ["oneturn_programs_total"]}`,
		`{"metrics_lack": ["turn-1"]}`, `{"artifacts": [{"call": "0", "artifact_id": "a1", "skill_id": null}]}`,
	} {
		expect := expected(t, met)
		require.Empty(t, o.verify(expect), met)
		require.Empty(t, o.unnoticed(expect), met)
	}
	for _, not := range []string{
		`{"response": {"content_contains": ["it", "worked"]}}`,
		`{"results": []}`, `{"results": [{"call": "0", "output": {}}]}`, `{"bindings": {}}`, `{"calls": {"a": 2}}`, `{"errors": []}`,
		`{"order": ["0", "1"]}`, `{"order": ["0", "0", "1", "2"]}`, `{"args": {"0": {}}}`, `{"args": {"2": {}}}`, `{"peak": {"*": 1}}`,
		`{"events_first": [["tool_call", "#0"]]}`, `{"absent": ["#0"]}`, `{"rising_fencing_token": ["1"]}`, `{"duration_ms": {"max": 20}}`,
		`{"results": [{"call": "0", "output": {"n": 1}}], "numbers_as_written": true}`, `{"errors": [{"error": {"available_fields": ["a"]}}]}`,
	} {
		require.NotEmpty(t, o.verify(expected(t, not)), not)
	}
}

func TestIdsOfStepsInAPayloadAreComparedWithoutTheTurn(t *testing.T) {
	t.Parallel()
	payload := expected(t, `{"steps": [{"exec_id": "turn-1#s1", "children": [{"exec_id": "turn-1#g[0]", "output": "turn-1#x"}]}]}`)
	require.Equal(t, expected(t, `{"steps": [{"exec_id": "#s1", "children": [{"exec_id": "#g[0]", "output": "turn-1#x"}]}]}`), withoutTurn(payload, "turn-1"))
}
