package oneturntest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
)

// retried is a plan whose second call failed, and its retry t2, which has copied the first call and run the others.
func retried(t *testing.T, failed *events.ToolResponse, rerun ...string) *oneturntest.Facts {
	t.Helper()
	h := newSteps(t, plan("0", "1", "2"))
	h.Accepted[0].MayFail = true
	h.ran("0", "A", 1, "unsafe")
	h.called("1", "A", 1, "unsafe")
	h.noteOf("1", "enter", 1)
	h.noteOf("1", "exit", 1)
	failed.ToolCallID, failed.Status, failed.AppID, failed.ChatID, failed.Turn = "t1#1", "error", "app", "chat", "t1"
	h.record(of("1").Public("tool_response"), "A", 1, "", h.event(events.KindToolResponse, failed))
	h.record(key.Public("tool_response"), "A", 1, "", h.event(events.KindToolResponse, &events.ToolResponse{
		ToolCallID: "t1", Status: "error", Code: failed.Code, AppID: "app", ChatID: "chat", Turn: "t1",
	}))

	again := newSteps(t, plan("0", "1", "2"))
	again.Journal[0].Data = again.event(events.KindToolCall, &events.ToolCall{ToolCallID: "t1", AppID: "app", ChatID: "chat", Turn: "t1", Rerun: rerun, ResumeOf: "FIRST"})
	started, err := events.ReadPlanStarted(again.Journal[1].Data)
	require.NoError(t, err)
	started.Payload.Steps = []events.PlanStep{{Call: "0", Copied: &events.CopiedCall{From: "t1#0", Success: true}}}
	again.Journal[1].Data = again.event(events.KindPlanStarted, started)
	again.ran("1", "A", 1, "unsafe")
	again.ran("2", "A", 1, "unsafe")
	again.respond()
	return joined(h.Facts, again.Facts)
}

// joined has the facts of two turns: the second one becomes t2, and follows the first.
func joined(first, second *oneturntest.Facts) *oneturntest.Facts {
	rename := func(s string) string { return strings.ReplaceAll(s, "t1", "t2") }
	last := first.Journal[len(first.Journal)-1]
	for _, r := range second.Journal {
		r.Key, r.Data = rename(r.Key), bytes.ReplaceAll(bytes.ReplaceAll(r.Data, []byte(`"t1`), []byte(`"t2`)), []byte("FIRST"), []byte("t1"))
		r.Seq, r.Time = r.Seq+last.Seq, r.Time.Add(last.Time.Sub(first.Journal[0].Time))
		first.Journal = append(first.Journal, r)
	}
	for _, e := range second.Ledger {
		e.Turn, e.Call, e.Key, e.Token = "t2", rename(e.Call), e.Key+" of t2", e.Token+last.Seq
		e.UnixNS += last.Time.Sub(first.Journal[0].Time).Nanoseconds()
		first.Ledger = append(first.Ledger, e)
	}
	first.Accepted = append(first.Accepted, oneturntest.Accepted{App: "app", Chat: "chat", Turn: "t2"})
	first.Copies = nil
	return first
}

func TestRetryThatCallsWhatHasEndedIsSeen(t *testing.T) {
	t.Parallel()
	happened := func() *events.ToolResponse {
		return &events.ToolResponse{Code: events.CodeToolError, EffectState: events.EffectHappened}
	}
	for name, c := range map[string]struct {
		facts func(t *testing.T) *oneturntest.Facts
		want  string // "" if all is in order
	}{
		"runs what failed": {func(t *testing.T) *oneturntest.Facts {
			t.Helper()
			return retried(t, &events.ToolResponse{Code: events.CodeToolError})
		}, ""},
		"names what may have happened": {func(t *testing.T) *oneturntest.Facts { t.Helper(); return retried(t, happened(), "1") }, ""},
		"runs what has happened":       {func(t *testing.T) *oneturntest.Facts { t.Helper(); return retried(t, happened(), "2") }, "called, though its effect may have happened"},
		"runs what timed out": {func(t *testing.T) *oneturntest.Facts {
			t.Helper()
			return retried(t, &events.ToolResponse{Code: events.CodeTimeout})
		}, "called, though its effect may have happened"},
		"runs what has succeeded": {func(t *testing.T) *oneturntest.Facts {
			t.Helper()
			return retried(t, &events.ToolResponse{Success: true})
		}, "called, though it has succeeded"},
		"has returned, and never ended": {func(t *testing.T) *oneturntest.Facts {
			t.Helper()
			f := retried(t, happened(), "1")
			f.Ledger = append(f.Ledger[:3:3], f.Ledger[4:]...)
			return f
		}, "by its response the tool has returned"},
	} {
		found := oneturntest.Check(c.facts(t), map[string]bool{})
		if c.want == "" {
			require.Empty(t, found, name)
			continue
		}
		require.Len(t, found, 1, name)
		require.Equal(t, "I2", found[0].Invariant)
		require.Contains(t, found[0].Text, c.want, name)
	}
}
