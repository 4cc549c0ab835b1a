package docs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
)

// TestOrchestratorOfTheExampleWorksWithThePermissionsThatThePageGivesIt answers a message of a user, after a restart too.
func TestOrchestratorOfTheExampleWorksWithThePermissionsThatThePageGivesIt(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	s.run("provisioner", "provision")
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	workflows := filepath.Join(root, "examples/02-approval/workflows")
	launch(t, command(t, s.dir, "worker", s.flags("worker", "--workflows", workflows, "--http", "off", "--soft-stop", "1s")...), "is ready")
	start := func() *process {
		cmd := exec.CommandContext(t.Context(), "python3", "-u", filepath.Join(root, "examples/13-orchestrator/orchestrator.py"))
		cmd.Env = append(os.Environ(), "NATS_URL="+s.as("orchestrator"), "PYTHONPATH="+filepath.Join(root, "clients/python"))
		return launch(t, cmd, "the orchestrator is ready")
	}
	nc, denied := s.connect("publisher")
	users, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	answered := func(message string) {
		t.Helper()
		m := &oneturn.UserMessage{MessageID: oneturn.MessageID{App: "acme", Chat: "c1", Message: message}, Workflow: "Studio", UserID: "ada", Content: "Spring sale"}
		_, err := users.PublishUserMessage(t.Context(), m)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			open, err := users.Questions(t.Context(), oneturn.QuestionFilter{App: "acme", Chat: "c1"})
			if err != nil {
				return false
			}
			for i := range open.Questions {
				if open.Questions[i].ToolCallID == "post-"+message+"/1" {
					return true
				}
			}
			return false
		}, 30*time.Second, 20*time.Millisecond)
	}
	first := start()
	answered("m1")
	operator, _ := s.connect("operator")
	js, err := jetstream.New(operator)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		consumer, err := js.PushConsumer(t.Context(), "KV_ONETURN_TURNS", "studio-orchestrator")
		return err == nil && consumer.CachedInfo().AckFloor.Consumer > 0 && consumer.CachedInfo().NumAckPending == 0
	}, 30*time.Second, 20*time.Millisecond, "it acknowledges")
	first.end(syscall.SIGKILL)
	second := start()
	answered("m2")
	second.end(syscall.SIGTERM)
	require.NotContains(t, strings.ToLower(first.stderr.String()+second.stderr.String()), "permission")
	require.Empty(t, denied.list())
}

// TestOrchestratorMayNotDoMoreThanThePageDocuments: it reads messages alone, and publishes nothing but messages of agents.
func TestOrchestratorMayNotDoMoreThanThePageDocuments(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	s.run("provisioner", "provision")
	nc, denied := s.connect("orchestrator")
	const create = "$JS.API.CONSUMER.CREATE.KV_ONETURN_TURNS.x"
	denies(t, nc, denied, func(subject string) error { return nc.Publish(subject, []byte("{}")) },
		"$KV.ONETURN_TURNS.e.acme.c.0-t.0.tool_response", "oneturn.in.default.structured_output_ready.acme.W.c", "oneturn.in.default.user_message.acme.W.c",
		"oneturn.in.default.tool_call_response.acme.W.c", "oneturn.in.default.cancel.acme.W.c", "oneturn.in.nopool.agent_message.acme.W.c", "oneturn.live.acme.c.x",
		"oneturn.events.acme.c.0-t.0.tool_call", "oneturn.api.acme.answer", "oneturn.gateway.stop", "_INBOX_worker.x", "$JS.API.INFO",
		create, create+".>", create+".$KV.ONETURN_TURNS.>", create+".$KV.ONETURN_TURNS.e.*.*.*.*.tool_response", create+".$KV.ONETURN_TURNS.p.*.*.*.*.text",
		"$JS.API.CONSUMER.DURABLE.CREATE.KV_ONETURN_TURNS.x", "$JS.API.CONSUMER.CREATE.KV_ONETURN_TURNS", "$JS.API.CONSUMER.DELETE.KV_ONETURN_TURNS.studio-orchestrator",
		"$JS.API.CONSUMER.CREATE.ONETURN_IN.x.oneturn.in.>", "$JS.API.STREAM.MSG.GET.KV_ONETURN_TURNS", "$JS.API.DIRECT.GET.KV_ONETURN_TURNS", "$JS.ACK.ONETURN_IN.workers-default.x",
	)
	denies(t, nc, denied, func(subject string) error {
		_, err := nc.SubscribeSync(subject)
		return err
	}, ">", "_INBOX.>", "_INBOX_worker.>", "oneturn.events.>", "oneturn.live.>", "oneturn.in.>", "oneturn.verdict.*.*", "$KV.>", "$JS.>")

	// The subject names the filter, and the server compares it with the one of the request.
	const texts = "$KV.ONETURN_TURNS.e.*.*.*.*.text"
	for _, config := range []map[string]any{
		{"filter_subject": "$KV.ONETURN_TURNS.>"}, {"filter_subjects": []string{texts, "$KV.ONETURN_TURNS.p.>"}}, {},
	} {
		config["name"], config["ack_policy"], config["deliver_subject"] = "x", "explicit", "_INBOX_orchestrator.x"
		body, err := json.Marshal(map[string]any{"stream_name": "KV_ONETURN_TURNS", "config": config})
		require.NoError(t, err)
		m, err := nc.Request(create+"."+texts, body, 10*time.Second)
		require.NoError(t, err)
		require.Contains(t, string(m.Data), `"error"`, config)
	}
}
