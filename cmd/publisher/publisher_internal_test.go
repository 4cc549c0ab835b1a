package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

func TestMain(m *testing.M) {
	testscript.Main(harness.LeakChecked{M: m}, map[string]func(){"publisher": main})
}

// TestScripts runs each script against a separate server. Those whose names begin with
// worker_ have a worker with one Go tool as well.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			t.Parallel()
			s := oneturntest.NewServer(t)
			if !strings.HasPrefix(filepath.Base(script), "bare_") {
				s.Provision()
			}
			if strings.HasPrefix(filepath.Base(script), "worker_") {
				work(t, s)
			}
			testscript.Run(t, testscript.Params{
				Files: []string{script},
				Setup: func(e *testscript.Env) error {
					e.Setenv("ONETURN_NATS", s.URL())
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
			})
		})
	}
}

type greeting struct {
	Name string `json:"name"`
}

type greeted struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// greet fails for Failing, and Sleepy only when the call is cancelled. It remembers
// Bob.
func greet(ctx context.Context, in greeting) (greeted, error) {
	switch in.Name {
	case "Failing":
		return greeted{}, errors.New("failed to greet")
	case "Sleepy":
		<-ctx.Done()
		return greeted{}, context.Cause(ctx)
	case "Bob":
		if err := tool.Vars(ctx).Set("greeted", in.Name); err != nil {
			return greeted{}, err
		}
	}
	return greeted{"success", "Hello, " + in.Name + "!"}, nil
}

type order struct {
	Item string `json:"item"`
}

type approval struct {
	Status string `json:"status"`
}

// approve asks the user of the turn.
func approve(ctx context.Context, in order) (greeted, error) {
	answer, err := tool.Ask[approval](ctx, tool.Question{Component: "OrderApproval", Payload: in, Timeout: time.Hour, Secret: in.Item == "key"})
	if err != nil {
		return greeted{}, err
	}
	return greeted{"success", in.Item + " " + answer.Status}, nil
}

// build is the tool of the workflow in testdata.
func build(_ context.Context, in struct {
	Title string `json:"title"`
},
) (string, error) {
	return in.Title + " is built", nil
}

// work runs a worker until the test ends.
func work(t *testing.T, s *oneturntest.Server) {
	t.Helper()
	t.Cleanup(start(t, s))
}

// start runs a worker until it is stopped.
func start(t *testing.T, s *oneturntest.Server) (stop func()) {
	t.Helper()
	w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{
		Workflows: filepath.Join("testdata", "workflows"),
		Tools: []oneturn.Tool{
			oneturn.NewTool("build", build, oneturn.ToolOptions{}),
			oneturn.NewTool("greet", greet, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"}),
			oneturn.NewTool("approve", approve, oneturn.ToolOptions{Workflow: "Hello", Agent: "Clerk", Model: "Order", Effect: oneturn.Replay}),
		},
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

func TestAnswerWithoutAWorkerIsPublishedAndCountsOnceOneRuns(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	command := func(code int, stdin string, args ...string) string {
		t.Helper()
		var out, log bytes.Buffer
		env := func(string) (string, bool) { return "", false }
		require.Equal(t, code, run(t.Context(), append(args, "--nats", s.URL()), env, strings.NewReader(stdin), &out, &log), log.String())
		return out.String()
	}
	const turn = `{"kind":"structured_output_ready","agent":"Clerk","model_name":"Order","auto_tool_mode":true,"turn_idempotency_key":"o1",` +
		`"structured_data":{"item":"pen"},"context":{"chat_id":"c 1","workflow_name":"Hello","user_id":"ada"}}`
	stop := start(t, s)
	require.Contains(t, command(1, turn, "publish", "-", "--wait", "--timeout", "2s"), `"status":"pending"`)
	stop()
	require.Contains(t, command(1, "", "answer", "c 1", "o2/1", "1", "--timeout", "1s"), "404 unknown")
	require.Contains(t, command(0, "", "answer", "c 1", "o1/2", "1", "--timeout", "1s"), "202 published", "it may still be asked")
	require.Contains(t, command(1, "", "answer", "c 1", "o1/1", `{"status":7}`, "--timeout", "1s"), "422 invalid")
	require.Contains(t, command(0, "", "answer", "c 1", "o1/1", `{"status":"approved"}`, "--timeout", "1s"), "202 published")
	work(t, s)
	require.Contains(t, command(0, turn, "publish", "-", "--wait"), `"content":"pen approved"`)
}

// exits runs a command and compares its exit code: exits CODE COMMAND ARG...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = failed.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

func TestStandardInputThatNeverEndsDoesNotHoldTheCommand(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	in, w := io.Pipe()
	defer w.Close()
	var stdout, stderr bytes.Buffer
	env := func(string) (string, bool) { return "", false }
	code := run(t.Context(), []string{"publish", "-", "--nats", s.URL(), "--timeout", "50ms"}, env, in, &stdout, &stderr)
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr.String(), "stdin: not all was published: the command's time limit of 50ms is over, see --timeout")
}
