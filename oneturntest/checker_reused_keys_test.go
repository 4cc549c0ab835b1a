package oneturntest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

func TestTurnsOfAReusedKeyThatRunAreInOrder(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	file := filepath.Join(t.TempDir(), "ledger")
	ledger, err := oneturntest.OpenLedger(file)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ledger.Close() })
	workflows := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(workflows, "W"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(workflows, "W", "oneturn.yaml"), []byte(`
on_key_reuse: run
agents: {A: {model: Title}}
models: {Title: {type: object}}
tools: [{name: note, kind: go, agent: A, effect: unsafe}]
`), 0o600))
	note := func(ctx context.Context, in title) (string, error) {
		call := tool.Info(ctx)
		if err := ledger.Enter(call); err != nil {
			return "", err
		}
		return in.Title, ledger.Exit(call)
	}
	w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{Workflows: workflows, Tools: []oneturn.Tool{oneturn.NewTool("note", note, oneturn.ToolOptions{})}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	client, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	var accepted []oneturntest.Accepted
	for _, text := range []string{"one", "two", "three", "two"} {
		turn := oneturn.Turn{TurnID: oneturn.TurnID{App: "app", Chat: "chat", Run: "r", Turn: "t"}, Workflow: "W", Agent: "A", Model: "Title", Data: title{text}}
		_, err := client.Publish(t.Context(), &turn)
		require.NoError(t, err)
		accepted = append(accepted, oneturntest.Accepted{App: "app", Chat: "chat", Run: "r", Turn: "t"})
	}
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	waiting, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	f, err := oneturntest.AtRest(waiting, s.Connect(), space, file)
	require.NoError(t, err)
	f.Accepted = accepted
	require.Len(t, f.Ledger, 6, "three turns")
	require.Empty(t, oneturntest.Check(f, map[string]bool{}))
	f.Accepted = nil
	require.Len(t, oneturntest.Check(f, nil), 3, "none of them was published")
}

// reused is [good], and other data under its turn key.
func reused(t *testing.T) (f *oneturntest.Facts, other subjects.Key, call string) {
	t.Helper()
	const fingerprint = "00112233445566778899"
	f = good(t)
	other = key.Reuse("", "t1", fingerprint)
	call = events.QualifiedCallID("t1", other.Turn)
	f.Journal = append(f.Journal, idempotency.Record{Key: key.ReuseNote(fingerprint), Meta: idempotency.Meta{Fingerprint: fingerprint}, Seq: 3, Time: time.Unix(3, 0)})
	for _, phase := range []string{"enter", "exit"} {
		f.Ledger = append(f.Ledger, oneturntest.LedgerEntry{Phase: phase, App: "app", Chat: "chat", Turn: "t1", Call: call, Key: call, Epoch: 1, Token: 4})
	}
	add(t, f, other.Public("tool_call"), &events.ToolCall{ToolCallID: call})
	add(t, f, other.Public("tool_response"), &events.ToolResponse{ToolCallID: call, Status: "ok", Success: true})
	f.Journal[3].Meta.Fingerprint, f.Journal[4].Meta.Fingerprint = fingerprint, fingerprint
	return f, other, call
}

func TestTurnOfAReusedKeyIsJudgedByItself(t *testing.T) {
	t.Parallel()
	check := func(change func(f *oneturntest.Facts, other subjects.Key, call string)) []oneturntest.Violation {
		f, other, call := reused(t)
		change(f, other, call)
		return oneturntest.Check(f, map[string]bool{})
	}
	require.Empty(t, check(func(*oneturntest.Facts, subjects.Key, string) {}))
	for name, c := range map[string]struct {
		change func(f *oneturntest.Facts, other subjects.Key, call string)
		want   string
	}{
		"entered twice": {func(f *oneturntest.Facts, _ subjects.Key, _ string) { f.Ledger = append(f.Ledger, f.Ledger[2:4]...) }, "I2 OTHER: effect unsafe, entered 2 times"},
		"no response": {func(f *oneturntest.Facts, _ subjects.Key, _ string) {
			f.Journal, f.Copies = f.Journal[:4], f.Copies[:3]
		}, "I1 OTHER: accepted, but without a response (claimed: true, entered: 1)"},
		"the same data under both keys": {
			func(f *oneturntest.Facts, _ subjects.Key, _ string) {
				f.Journal[0].Meta.Fingerprint = f.Journal[3].Meta.Fingerprint
			},
			"I2 OTHER: its data is claimed under the plain key " + key.String() + " as well",
		},
		"claimed before its key was chosen": {func(f *oneturntest.Facts, _ subjects.Key, _ string) { f.Journal[2].Seq = 9 }, "I4 OTHER: claimed before its key was chosen"},
		"no record of the choice": {func(f *oneturntest.Facts, _ subjects.Key, _ string) {
			f.Journal[2].Meta.Outcome = idempotency.OutcomePlainKey
		}, "I1 OTHER: a turn that was not published was claimed or run"},
	} {
		var found []string
		var of string
		for _, v := range check(func(f *oneturntest.Facts, other subjects.Key, call string) {
			of = other.String()
			c.change(f, other, call)
		}) {
			found = append(found, v.String())
		}
		require.Contains(t, found, strings.Replace(c.want, "OTHER", of, 1), name)
	}
}
