package docs_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/tool"
)

// without takes one right away from the role worker.
func without(t *testing.T, right string) func(string) string {
	t.Helper()
	return func(config string) string {
		before, rest, ok := strings.Cut(config, `{ user: "worker",`)
		require.True(t, ok)
		block, after, ok := strings.Cut(rest, "allow_responses")
		require.True(t, ok)
		require.Contains(t, block, `"`+right+`"`)
		at := strings.LastIndex(block, `"`+right+`"`) // an inbox is to be subscribed to first of all
		block = block[:at] + `"nothing.at.all"` + block[at+len(right)+len(`""`):]
		return before + `{ user: "worker",` + block + "allow_responses" + after
	}
}

type noted struct {
	Text string `json:"text"`
}

// noteDown changes a context variable and returns more than a record holds.
func noteDown(ctx context.Context, in noted) (string, error) {
	return strings.Repeat(in.Text, store.InlineLimit), tool.Vars(ctx).Set("last", in.Text)
}

// askSoon asks a question that expires immediately.
func askSoon(ctx context.Context, in noted) (string, error) {
	return tool.Ask[string](ctx, tool.Question{Component: "Card", Payload: map[string]any{"text": in.Text}, Timeout: time.Millisecond})
}

// F25: a worker that lacks one right reports it within ten seconds of its first turn which subject it
// needs: it is not ready, or ends with an error.
func TestMissingRightIsNamedBySubject(t *testing.T) {
	t.Parallel()
	for _, right := range []string{
		// Not $JS.ACK: allow_responses lets a worker answer each message once, which a short turn needs no more than.
		"$JS.API.CONSUMER.MSG.NEXT.ONETURN_IN.workers-default",
		"$JS.API.CONSUMER.MSG.NEXT.ONETURN_TIMERS.timers", "oneturn.timer.>", "oneturn.in.*.expire.>", "oneturn.in.*.deferred_response.>",
		"$KV.ONETURN_TURNS.>", "$JS.API.STREAM.MSG.GET.KV_ONETURN_TURNS", "$KV.ONETURN_CONTEXT.>", "$JS.API.STREAM.MSG.GET.KV_ONETURN_CONTEXT",
		"$KV.ONETURN_LIMITS.>", "$JS.API.DIRECT.GET.KV_ONETURN_LIMITS.>",
		"$O.ONETURN_BLOBS.>", "oneturn.dead.>", "oneturn.live.>", "$JS.API.INFO", "$JS.API.CONSUMER.INFO.*.*",
		"oneturn.events.*.*.*.*.cancel", "oneturn.events.*.*.*.*.ack.*", "oneturn.in.default.cancel.>", "oneturn.api.*.*", "_INBOX_worker.>",
	} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			s := newSecured(t, without(t, right))
			s.run("provisioner", "provision", "--ack-wait", "1s")
			nc, _ := s.connect("worker")
			w, err := oneturn.NewWorker(nc, oneturn.Config{
				SoftStop: time.Millisecond, Tools: []oneturn.Tool{
					oneturn.NewTool("note", noteDown, oneturn.ToolOptions{
						Workflow: "Notes", Agent: "Filer", Model: "Note",
						Limits: oneturn.Limits{Tool: oneturn.Limit{Rate: oneturn.Rate{Calls: 100, Per: time.Second}}},
					}),
					oneturn.NewTool("ask", askSoon, oneturn.ToolOptions{Workflow: "Notes", Agent: "Asker", Model: "Ask", Effect: oneturn.Replay}),
				},
			})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			over := false
			defer func() {
				nc.Close() // what is denied has no answer, and is asked for again as long as there is a connection
				cancel()
				if !over {
					<-ended
				}
			}()
			publisher, _ := s.connect("publisher")
			c, err := oneturn.NewClient(publisher, oneturn.ClientOptions{WithoutMsgID: true})
			require.NoError(t, err)
			for _, text := range []string{"x", "y"} { // the second one is a conflict
				_, err = c.Publish(t.Context(), note("c", "t", "Filer", "Note", map[string]any{"text": text}))
				require.NoError(t, err)
			}
			_, err = c.Publish(t.Context(), note("c", "asks", "Asker", "Ask", map[string]any{"text": "x"}))
			require.NoError(t, err)
			subject, _, _ := strings.Cut(strings.TrimSuffix(strings.Replace(right, ".in.*.", ".in.default.", 1), ">"), "*")
			lastErr := error(nil)
			require.Eventually(t, func() bool {
				select {
				case lastErr = <-ended:
					over = true
				default:
					lastErr = w.Ready()
				}
				return over || lastErr != nil && strings.Contains(lastErr.Error(), subject)
			}, 10*time.Second, 10*time.Millisecond, "it does not name the subject")
			require.ErrorContains(t, lastErr, subject)
			require.ErrorContains(t, lastErr, "denies this user")
		})
	}
}

// F25: a worker of an earlier version's user cannot announce its workflows, which turns do not need: it names the subject, is
// ready and runs them.
func TestWorkerWithoutTheRightToAnnounceItsWorkflowsIsReady(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"$KV.ONETURN_WORKFLOWS.>", "$JS.API.DIRECT.GET.KV_ONETURN_WORKFLOWS"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			s := newSecured(t, without(t, right))
			write(t, s.dir, "workflows/Notes/oneturn.yaml", securedManifest)
			write(t, s.dir, "workflows/Notes/tools.py", securedTools)
			s.run("provisioner", "provision")
			w := launch(t, command(t, s.dir, "worker", s.flags("worker", "--workflows", "workflows", "--http", "off", "--soft-stop", "1s")...), "is ready")
			nc, _ := s.connect("publisher")
			c, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
			require.NoError(t, err)
			require.True(t, do(t, c, note("c1", "t1", "Filer", "Note", map[string]any{"text": "x"})).Success)
			require.Eventually(t, func() bool { return strings.Contains(w.stderr.String(), "deny this user to publish to "+right) }, 20*time.Second, 10*time.Millisecond)
			w.end(syscall.SIGTERM)
			require.Equal(t, 1, strings.Count(w.stderr.String(), "workflows are not announced"))
		})
	}
}

// F25: doctor names what its own role lacks.
func TestDoctorNamesARightThatItLacks(t *testing.T) {
	t.Parallel()
	s := newSecured(t, func(config string) string {
		before, block, ok := strings.Cut(config, `{ user: "operator",`)
		require.True(t, ok)
		return before + `{ user: "operator",` + strings.Replace(block, "$JS.API.CONSUMER.INFO.*.*", "nothing.at.all", 1)
	})
	s.run("provisioner", "provision")
	out, code := output(t, command(t, s.dir, "turnctl", s.flags("operator", "doctor", "--timeout", "1s")...))
	require.Equal(t, 1, code, out)
	require.Contains(t, strings.Join(strings.Fields(out), " "), "the server denies this user to publish to $JS.API.CONSUMER.INFO.ONETURN_IN.workers-default")
}
