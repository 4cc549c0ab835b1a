package events

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A retry starts a turn that runs the program of an earlier one again. It names that turn and carries no data: the worker
// reads the journal for what the earlier turn has finished. It is a separate kind, so that a worker which does not know it
// cannot take it for a turn that runs from its beginning.

// ModelRetry stands for a model in the fingerprint of a retry.
const ModelRetry = "retry"

// NewRetry returns the event of a turn, id, that retries the turn with the key resumeOf of the same run. Rerun are the
// calls that run again although their effect may have happened, by their ids in the program.
func NewRetry(id TurnID, workflow, resumeOf string, rerun []string) *StructuredOutputReady {
	rerun = slices.Compact(slices.Sorted(slices.Values(rerun)))
	t := &StructuredOutputReady{TurnID: id, Workflow: workflow, Model: ModelRetry, AutoToolMode: true, ResumeOf: resumeOf, Rerun: rerun}
	t.setRetryData()
	return t
}

// setRetryData makes the data of a retry, which has only what distinguishes it from another retry under its key.
func (t *StructuredOutputReady) setRetryData() {
	calls := make([]any, 0, len(t.Rerun))
	for _, call := range t.Rerun {
		calls = append(calls, call)
	}
	t.Data = map[string]any{"resume_of": t.ResumeOf, "rerun": calls}
}

// RetryKey returns the turn key of the retry of a turn, unless its sender chooses another one: the key of that turn and
// "~retry1", of a retry the next number. So a command that is given twice is one retry.
func RetryKey(turn string) string {
	const mark = "~retry"
	if at := strings.LastIndex(turn, mark); at > 0 {
		digits := turn[at+len(mark):]
		if n, err := strconv.ParseUint(digits, 10, 32); err == nil && digits == strconv.FormatUint(n, 10) {
			return turn[:at] + mark + strconv.FormatUint(n+1, 10)
		}
	}
	return turn + mark + "1"
}

// maxRerun is how many calls a retry names at most.
const maxRerun = 1000

// Retry is [DecodeTurn] for an opened retry message.
func (m *Message) Retry() (*StructuredOutputReady, error) {
	if err := m.want(KindRetry); err != nil {
		return nil, err
	}
	f := fields{data: m.Data, err: m.timestampErr}
	f.object("context")
	t := NewRetry(f.turnID("turn_idempotency_key", "context.turn_idempotency_key"), f.name("context.workflow_name", "workflow_name"),
		strings.Clone(f.id("resume_of")), f.calls("rerun"))
	t.ContextVariables, t.Timestamp = f.object("context.context_variables"), m.Timestamp
	t.Enterprise = f.id("context.app_id", "app_id") == "" && f.id("context.enterprise_id", "enterprise_id") != ""
	f.require(t.Chat, "chat_id", "context.chat_id or chat_id")
	f.require(t.Turn, "turn_idempotency_key", "turn_idempotency_key or context.turn_idempotency_key")
	switch t.ResumeOf {
	case "":
		f.fail(decodeError("resume_of is missing: name the turn to retry by its turn key"))
	case t.Turn:
		f.fail(decodeError("resume_of is the turn key of the retry itself: a retry is a new turn and needs another key"))
	}
	if m.deepest > MaxDataDepth {
		f.shallow("context.context_variables")
	}
	if m.nodes > MaxDataNodes {
		f.fail(decodeError(fmt.Sprintf("the event holds more than %d values", MaxDataNodes)))
	}
	if f.err != nil {
		return nil, f.err
	}
	return t, nil
}

// calls returns the list of ids of calls at path, nil when it is absent or null.
func (f *fields) calls(path string) []string {
	v := f.lookup(path)
	if v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) > maxRerun {
		f.fail(wrongType(path, fmt.Sprintf("a list of at most %d ids of calls", maxRerun), v))
		return nil
	}
	calls := make([]string, 0, len(list))
	for _, item := range list {
		call, _ := item.(string)
		if len(call) > MaxStepBytes || !isStep(call) || strings.ContainsFunc(call, func(r rune) bool { return !inStep(r) }) {
			f.fail(decodeError(fmt.Sprintf("%s has %.80q, which is not the id of a call: use ids such as \"1\"", path, fmt.Sprint(item))))
			return nil
		}
		calls = append(calls, strings.Clone(call))
	}
	return calls
}

// retryOf writes which turn a retry retries.
func (w *writer) retryOf(resumeOf string, rerun []string) {
	w.optional("resume_of", resumeOf)
	if len(rerun) > 0 {
		calls := make([]any, 0, len(rerun))
		for _, call := range rerun {
			calls = append(calls, call)
		}
		w.value("rerun", calls)
	}
}
