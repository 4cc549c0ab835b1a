package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
)

// startPlans runs a worker with plans of a tool that asks, until it is stopped.
func startPlans(t *testing.T, s *oneturntest.Server, dir string) (stop func()) {
	t.Helper()
	w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{
		Workflows: dir, ParkImmediately: true, Tools: []oneturn.Tool{oneturn.NewTool("approve", approve, oneturn.ToolOptions{Effect: oneturn.Replay})},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func TestQuestionsOfStepsAreAnsweredAndTheirTurnsCancelledByTheirIDs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "Orders"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Orders", "oneturn.yaml"), []byte(
		"agents: {Clerk: {}}\ntools:\n- {name: run_plan, kind: plan, agent: Clerk, uses: [approve]}\n- {name: approve, kind: go, auto: false, effect: replay}\n"), 0o600))
	s := oneturntest.NewServer(t)
	s.Provision()
	command := func(code int, stdin string, args ...string) (string, string) {
		t.Helper()
		var out, log bytes.Buffer
		env := func(string) (string, bool) { return "", false }
		require.Equal(t, code, run(t.Context(), append(args, "--nats", s.URL()), env, strings.NewReader(stdin), &out, &log), log.String())
		return out.String(), log.String()
	}
	plan := func(turn, run string) string {
		return fmt.Sprintf(`{"kind":"structured_output_ready","agent":"Clerk","model_name":"","auto_tool_mode":true,"turn_idempotency_key":%q,%s"structured_data":{"type":"tool_calls","calls":[{"tool_name":"approve","arguments":{"item":"pen"}}]},`+
			`"context":{"chat_id":"c","workflow_name":"Orders","user_id":"ada"}}`, turn, run)
	}
	stop := startPlans(t, s, dir)
	out, log := command(1, plan("p1", ""), "publish", "-", "--wait", "--timeout", "2s")
	require.Contains(t, out, `"status":"pending"`)
	require.Contains(t, log, `waiting for an answer: approve (OrderApproval) from ada`)
	require.Contains(t, log, `publisher answer c 'p1#0/1' JSON`)
	stop()
	out, _ = command(1, "", "answer", "c", "p1#0/1", `{"status":7}`, "--timeout", "1s")
	require.Contains(t, out, "422 invalid", "the journal has its schema")
	out, _ = command(0, "", "answer", "c", "p1#0/1", `{"status":"approved"}`, "--timeout", "1s")
	require.Contains(t, out, "202 published")
	t.Cleanup(startPlans(t, s, dir))
	out, _ = command(0, plan("p1", ""), "publish", "-", "--wait")
	require.Contains(t, out, `"message":"pen approved"`)

	for turn, id := range map[string]string{"p2": "p2#0/1", "p3": "p3#0", "p4": "p4"} {
		command(1, plan(turn, ""), "publish", "-", "--wait", "--timeout", "500ms")
		out, _ = command(0, "", "cancel", "c", "--tool-call-id", id, "--wait")
		require.Contains(t, out, `"turn":"`+turn+`"`)
		require.Contains(t, out, `"code":"cancelled"`)
	}
	command(1, plan("p5", `"run_id":"r",`), "publish", "-", "--wait", "--timeout", "500ms")
	client, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	open, err := client.Questions(t.Context(), oneturn.QuestionFilter{Chat: "c"})
	require.NoError(t, err)
	require.Len(t, open.Questions, 1)
	id := open.Questions[0].ToolCallID
	_, log = command(1, "", "cancel", "c", "--tool-call-id", id, "--wait")
	require.Contains(t, log, "set --run if the turn has a run id")
	out, _ = command(0, "", "cancel", "--chat", "c", "--tool-call-id", id, "--run", "r", "--wait")
	require.Contains(t, out, `"code":"cancelled"`)

	_, log = command(0, "", "cancel", "c", "p2#0")
	require.Contains(t, log, "'p2#0' is taken for the key of a turn: to cancel the turn of a step, use --tool-call-id 'p2#0'")
	_, log = command(2, "", "cancel", "c", "p2", "--tool-call-id", "p2#0")
	require.Contains(t, log, "one of --turn TURN and --tool-call-id ID")
}
