package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/examples"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
)

func TestMain(m *testing.M) {
	testscript.Main(harness.LeakChecked{M: m}, map[string]func(){"worker": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:  filepath.Join("testdata", "script"),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
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

// running is a worker command that runs in this process.
type running struct {
	start  start
	stderr *bytes.Buffer // to be read after stop
	cancel context.CancelFunc
	code   chan int
}

// stop does what the first signal does, and returns the exit code.
func (r *running) stop() int {
	r.cancel()
	return <-r.code
}

func noEnv(string) (string, bool) { return "", false }

// launch runs the worker command until it reports that it consumes. It stops with the test.
func launch(t *testing.T, args ...string) *running {
	t.Helper()
	return launchWith(t, noEnv, args...)
}

// launchWith is launch with an environment.
func launchWith(t *testing.T, env cli.Lookup, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{cancel: cancel, code: make(chan int, 2), stderr: &bytes.Buffer{}}
	out, in := io.Pipe()
	go func() {
		code := run(ctx, append(args, "-o", "json"), env, in, r.stderr)
		_ = in.Close()
		r.code <- code
		r.code <- code
	}()
	t.Cleanup(func() { r.stop() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		require.Fail(t, "the worker has not started", "exit code %d\n%s", r.stop(), r.stderr)
	}
	require.NoError(t, json.Unmarshal(line, &r.start))
	return r
}

func embeddedArgs(t *testing.T, workflows string) []string {
	t.Helper()
	return []string{"--workflows", workflows, "--listen", "127.0.0.1:0", "--store", t.TempDir(), "--http", "127.0.0.1:0", "--soft-stop", "5s"}
}

const hello = "../../examples/01-hello/workflows"

func client(t *testing.T, url string) *oneturn.Client {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	c, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	return c
}

// do publishes an event and returns its response.
func do(t *testing.T, c *oneturn.Client, body []byte) *oneturn.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	turn, _, err := c.PublishRaw(ctx, body)
	require.NoError(t, err)
	r, err := c.Await(ctx, turn.TurnID)
	require.NoError(t, err)
	return r
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestWorkerWithItsOwnServerRunsTheFirstExampleAndDrains(t *testing.T) {
	t.Parallel()
	w := launch(t, embeddedArgs(t, hello)...)
	require.Equal(t, "embedded", w.start.Tier.Name)
	info, err := os.Stat(filepath.Join(w.start.Store, "secret-keys"))
	require.NoError(t, err, "the embedded server's worker has dedicated keys")
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Zero(t, w.start.Errors+w.start.Warnings, "%v", w.start.Problems)
	require.Equal(t, "oneturn.in.default.structured_output_ready.<app>.<workflow>.<chat>", w.start.Publish)
	require.Equal(t, []startedWorkflow{{"Hello", []string{"Greeter/Greeting → greet", "Cashier/Charge → charge", "Archivist/Note → file_note"}, ""}}, w.start.Workflows)

	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		code, body := get(t, w.start.HTTP+path)
		require.Equal(t, http.StatusOK, code)
		require.Equal(t, want, body)
	}

	turns, err := examples.Hello.ReadFile("01-hello/turns.jsonl")
	require.NoError(t, err)
	c := client(t, w.start.NATS)
	var outcomes []string
	for line := range bytes.Lines(turns) {
		r := do(t, c, line)
		outcomes = append(outcomes, fmt.Sprintf("%v %s %s", r.Success, r.Code, r.Content))
	}
	require.Equal(t, []string{
		"true  Bonjour, Ada!",
		"true  Ada paid 12.50.",
		"false validation_failed The output of agent Greeter does not fit model Greeting (2 violations).",
	}, outcomes)

	_, metrics := get(t, w.start.HTTP+"/metrics")
	require.Contains(t, metrics, `oneturn_turns_total{outcome="ok",tool="greet",workflow="Hello"} 1`)
	require.Contains(t, metrics, "go_goroutines")
	require.Equal(t, cli.OK, w.stop())
	require.NotContains(t, w.stderr.String(), "Ada", "payloads are not logged")
}

func TestWorkerRunsAFolderOfMozaiksManifestsAndReportsItsErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../testdata/mozaiks/workflows/WF")))
	root := filepath.Join(t.TempDir(), "workflows")
	require.NoError(t, os.CopyFS(filepath.Join(root, "WF"), os.DirFS(dir)))
	w := launch(t, embeddedArgs(t, root)...)
	require.Positive(t, w.start.Errors)
	require.Len(t, w.start.Problems, w.start.Errors)
	require.Contains(t, w.start.Problems[0], "WF/tools.yaml:")

	r := do(t, client(t, w.start.NATS), []byte(`{"kind":"structured_output_ready","agent":"A","model_name":"Out",
		"structured_data":{"name":"Al"},"auto_tool_mode":true,"turn_idempotency_key":"t1",
		"context":{"chat_id":"c1","app_id":"app","workflow_name":"WF"}}`))
	require.True(t, r.Success, r.Content)
	require.Equal(t, "Success-ish", r.Content)
	require.Equal(t, cli.OK, w.stop())
}

func TestWorkerWithoutBindingsStartsAndWarns(t *testing.T) {
	t.Parallel()
	w := launch(t, embeddedArgs(t, t.TempDir())...)
	require.Empty(t, w.start.Workflows)
	require.Equal(t, cli.OK, w.stop())
	require.Contains(t, w.stderr.String(), "no tool is bound")
}

func TestWorkerUsesAProvisionedServerAndEndsWhenItsConsumerIsGone(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	w := launch(t, "--workflows", hello, "--nats", s.URL(), "--http", "off")
	require.Equal(t, "single", w.start.Tier.Name)
	require.Empty(t, w.start.HTTP)
	require.Empty(t, w.start.Store)

	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	require.NoError(t, js.DeleteConsumer(t.Context(), "ONETURN_IN", "workers-default"))
	require.Equal(t, cli.Failed, <-w.code)
	require.Contains(t, w.stderr.String(), "does not exist")
	require.NotContains(t, w.stderr.String(), "not the default", "what is safe is left to turnctl doctor")
}

func TestServerThatIsNotProvisionedIsRefusedWithTheFix(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"--workflows", hello, "--nats", s.URL(), "--http", "off"}, noEnv, io.Discard, &stderr)
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr.String(), "turnctl provision")
	_, err := mustJetStream(t, s).Stream(t.Context(), "ONETURN_IN")
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound, "a worker makes nothing on a server that is not its own")
}

func mustJetStream(t *testing.T, s *oneturntest.Server) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	return js
}

func TestAddressesAndStoresInUseAreErrorsThatNameTheFlag(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().String()
	args := embeddedArgs(t, t.TempDir())
	w := launch(t, args...)
	for flag, args := range map[string][]string{
		"--http " + taken:   append(embeddedArgs(t, t.TempDir()), "--http", taken),
		"--listen " + taken: append(embeddedArgs(t, t.TempDir()), "--listen", taken),
		"--store DIR":       args,
	} {
		var stderr bytes.Buffer
		require.Equal(t, cli.Failed, run(t.Context(), args, noEnv, io.Discard, &stderr), flag)
		require.Contains(t, stderr.String(), flag)
		require.Contains(t, stderr.String(), "in use")
	}
	require.Equal(t, cli.OK, w.stop())
}

func TestStartForPeopleFitsWhatTheyNeed(t *testing.T) {
	t.Parallel()
	s := &start{
		Name: "w1", NATS: "nats://127.0.0.1:4222", Store: "oneturn-data", Pool: "default", HTTP: "http://127.0.0.1:8080",
		Tier: provision.TierOf(true, 1, provision.SyncLazy), Folder: "wf", Publish: "oneturn.in.…", Errors: 1, Warnings: 2, Problems: []string{"A/oneturn.yaml:3: error: bad"},
		Workflows: []startedWorkflow{{"A", nil, "no manifest names a tool"}, {"B", []string{"X/M → t"}, ""}},
	}
	var out bytes.Buffer
	require.NoError(t, s.write("text", &out))
	for _, want := range []string{
		"w1 is ready", "A: no tool is bound: no manifest names a tool", "B: X/M → t", "A/oneturn.yaml:3: error: bad", "1 error, 2 warnings", "memory: ",
		"nats://127.0.0.1:4222, embedded, store oneturn-data", "http://127.0.0.1:8080/healthz", "publisher publish FILE --wait --nats nats://127.0.0.1:4222",
	} {
		require.Contains(t, out.String(), want)
	}
	require.NotContains(t, out.String(), "no password")
	require.NotContains(t, out.String(), "accounts")
	require.Empty(t, signInOf(&config.Worker{}))
	out.Reset()
	withAccounts := *s
	withAccounts.accounts, withAccounts.signIn = "accounts.conf", signInOf(&config.Worker{Accounts: "accounts.conf"})
	require.NoError(t, withAccounts.write("text", &out))
	require.Contains(t, out.String(), "accounts and users of accounts.conf")
	require.Contains(t, strings.Join(strings.Fields(out.String()), " "), "--nats-user TENANT-publisher --inbox-prefix _INBOX_publisher, with its password in ONETURN_NATS_PASSWORD")
	s.open = true
	out.Reset()
	require.NoError(t, s.write("text", &out))
	require.Contains(t, out.String(), "no password: any process here, including tools, may")
	for text := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSpace(text)), cli.Width)
	}
}

func TestSettingsReachTheWorker(t *testing.T) {
	t.Parallel()
	configOf := func(cfg config.Worker) oneturn.Config { return workerConfig(&cfg, slog.New(slog.DiscardHandler), nil) }
	c := configOf(config.Worker{LoadTimeout: 3 * time.Second, SweepEvery: time.Minute, CacheSize: 5})
	require.Equal(t, 3*time.Second, c.Python.LoadTimeout)
	require.Equal(t, time.Minute, c.SweepEvery)
	require.Equal(t, 5, c.CacheBytes)
	require.False(t, c.LogCalls, "the log is not at level debug")
	zero := configOf(config.Worker{})
	require.True(t, zero.NoSweeps, "0s: no part in sweeps, not the default")
	require.True(t, zero.ParkImmediately, "0s: immediately, not the default")
	require.True(t, zero.NoCache, "0: no cache, not the default")
}

func TestZeroDurationsMeanZeroNotTheDefault(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	w := launch(t, append(embeddedArgs(t, hello), "--binding-grace", "0s", "--soft-stop", "0s")...)
	r := do(t, client(t, w.start.NATS), []byte(`{"agent":"A","structured_data":{},"auto_tool_mode":true,"turn_idempotency_key":"t1",
		"kind":"structured_output_ready","context":{"chat_id":"c1","workflow_name":"Nowhere"}}`))
	require.Equal(t, events.CodeNoBinding, r.Code)
	require.Equal(t, cli.OK, w.stop(), stderr.String())
}

func TestWorkerIsAloneWhileNoOtherServesTheRequestAPI(t *testing.T) {
	t.Parallel()
	now, workers, err, counts := time.Now(), 1, error(nil), 0
	a := &aloneCheck{now: func() time.Time { return now }, count: func() (int, error) { counts++; return workers, err }}
	require.True(t, a.is())
	workers = 2
	require.True(t, a.is(), "a result is cached for a second")
	require.Equal(t, 1, counts)
	now = now.Add(2 * aloneFor)
	require.False(t, a.is())
	workers, err = 1, errors.New("closed")
	now = now.Add(2 * aloneFor)
	require.False(t, a.is(), "an unknown count does not end a turn")
}

// TestStreamsOfASmallStoreLeaveRoomForResponses: a store that was made without the limit keeps its dead letters.
func TestStreamsOfASmallStoreLeaveRoomForResponses(t *testing.T) {
	t.Parallel()
	args := embeddedArgs(t, hello)
	size := func(w *running, name string) int64 {
		nc, err := nats.Connect(w.start.NATS)
		require.NoError(t, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		stream, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		return stream.CachedInfo().Config.MaxBytes
	}
	w := launch(t, args...)
	require.EqualValues(t, provision.DefaultInMaxBytes, size(w, "ONETURN_IN"))
	require.Zero(t, w.stop())
	w = launch(t, append(args, "--store-max", "2GiB")...)
	require.EqualValues(t, 64<<20, size(w, "ONETURN_IN"))
	require.EqualValues(t, provision.DefaultDeadMaxBytes, size(w, "ONETURN_DEAD"))
	require.Zero(t, w.stop())
	w = launch(t, append(embeddedArgs(t, hello), "--store-max", "2GiB")...)
	require.EqualValues(t, 32<<20, size(w, "ONETURN_DEAD"))
}
