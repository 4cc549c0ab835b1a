package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/oneturntest"
)

// A test binary that is started with this variable runs as a worker.
const roleVariable = "ONETURN_DEMO_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "ready": // prints its start and waits to be killed
		fmt.Println(`{"http":"http://127.0.0.1:9"}`) //nolint:forbidigo // it is a process
		select {}
	case "ends":
		fmt.Fprintln(os.Stderr, "no workflows today")
		os.Exit(1)
	}
	oneturntest.VerifyNoLeaks(m)
}

func testWorkers(t *testing.T, role string) *workerGroup {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := &workerGroup{o: options{worker: self}, dir: t.TempDir(), env: []string{roleVariable + "=" + role}}
	t.Cleanup(func() { require.NoError(t, c.stop()) })
	return c
}

func TestLedgerReturnsTheRunsOfATurnWithoutAHalfWrittenLine(t *testing.T) {
	t.Parallel()
	l := ledger(filepath.Join(t.TempDir(), "ledger.jsonl"))
	runs, err := l.of("t1")
	require.NoError(t, err)
	require.Empty(t, runs, "no file, no runs")

	text := `{"tool":"a","turn":"t1","epoch":1,"worker":7}` + "\n" + `{"tool":"a","turn":"t2","epoch":1,"worker":7}` + "\n" +
		`{"tool":"a","turn":"t1","epoch":2,"worker":8}` + "\n" + `{"tool":"a","turn":"t1"`
	require.NoError(t, os.WriteFile(string(l), []byte(text), 0o600))
	runs, err = l.of("t1")
	require.NoError(t, err)
	require.Equal(t, []run{{"a", "", "t1", 1, 7}, {"a", "", "t1", 2, 8}}, runs)
	first, err := l.wait(t.Context(), "t2")
	require.NoError(t, err)
	require.Equal(t, 7, first.Worker)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = l.wait(ctx, "t3")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, os.WriteFile(string(l), []byte("nonsense\n"), 0o600))
	_, err = l.of("t1")
	require.Error(t, err)
}

func TestMetricIsReadByItsWholeName(t *testing.T) {
	t.Parallel()
	text := "# HELP oneturn_duplicates_total x\n# TYPE oneturn_duplicates_total counter\noneturn_duplicates_total_more 9\noneturn_duplicates_total 2\n"
	n, err := metric(strings.NewReader(text), "oneturn_duplicates_total")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	_, err = metric(strings.NewReader(text), "oneturn_other")
	require.ErrorContains(t, err, "not found")
	_, err = metric(strings.NewReader("a b\n"), "a")
	require.Error(t, err)
}

func TestMetricsOfAllLivingWorkersAreAdded(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			fmt.Fprintln(w, "m 2")
		}
	}))
	t.Cleanup(func() {
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	c := &workerGroup{all: []*worker{{}, {}, {gone: true}}}
	for _, w := range c.all {
		w.start.HTTP = s.URL
	}
	n, err := c.sum(t.Context(), "m")
	require.NoError(t, err)
	require.Equal(t, 4, n)
}

func TestTallyCountsEachTurnAndEventsWithoutATurn(t *testing.T) {
	t.Parallel()
	var n tally
	for _, body := range []string{`{"type":"chat.tool_response","data":{"turn":"t1"}}`, `{"turn":"t2"}`, `{"turn":"t1"}`, "nonsense"} {
		n.event([]byte(body))
	}
	require.Equal(t, map[string]int{"t1": 2, "t2": 1, "without a turn": 1}, n.wait(t.Context(), 3))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Len(t, n.wait(ctx, 99), 3, "it stops waiting")
}

func TestResponsesOfStepsAndOfTurnsAreCountedApart(t *testing.T) {
	t.Parallel()
	turns, steps := tally{key: responseOf}, tally{key: stepOf}
	for _, body := range []string{
		`{"turn":"t7","tool_call_id":"t7#0","step":"0"}`, `{"turn":"t7","tool_call_id":"t7#1","step":"1"}`, `{"turn":"t7","tool_call_id":"t7"}`,
	} {
		turns.event([]byte(body))
		steps.event([]byte(body))
	}
	require.Equal(t, map[string]int{"t7": 1}, turns.wait(t.Context(), 1))
	require.NoError(t, steps.waitFor(t.Context(), "t7#0", "t7#1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, steps.waitFor(ctx, "t7#2"), context.Canceled)
}

func TestOnlyOurOwnWorkerIsKilled(t *testing.T) {
	t.Parallel()
	c := testWorkers(t, "ready")
	w, err := c.start(t.Context())
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:9", w.start.HTTP)
	require.ErrorContains(t, c.kill(os.Getpid()), "not one of the workers")
	require.False(t, w.gone)
	require.NoError(t, c.kill(w.pid()))
	require.True(t, w.gone)
	require.Error(t, c.kill(w.pid()), "it is gone: another process may have its number by now")
	require.Empty(t, c.String())
}

func TestWorkersAreGoneAfterStop(t *testing.T) {
	t.Parallel()
	c := testWorkers(t, "ready")
	for range 2 {
		_, err := c.start(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, c.stop())
	for _, w := range c.all {
		require.ErrorIs(t, w.cmd.Process.Kill(), os.ErrProcessDone)
	}
}

func TestErrorOfAWorkerThatDoesNotStartHasItsLog(t *testing.T) {
	t.Parallel()
	_, err := testWorkers(t, "ends").start(t.Context())
	require.ErrorContains(t, err, "process ended")
	require.ErrorContains(t, err, "no workflows today")
	c := testWorkers(t, "ready")
	c.o.worker = filepath.Join(t.TempDir(), "none")
	_, err = c.start(t.Context())
	require.ErrorContains(t, err, "make build")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	c = testWorkers(t, "ready")
	c.env = []string{roleVariable + "=ready"}
	_, err = c.start(ctx)
	if err != nil { // it may have been faster
		require.ErrorContains(t, err, "enough")
	}
}

func TestUnpackedExamplesBindTheToolsOfTheScenarios(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "workflows")
	require.NoError(t, unpack(dir))
	set, err := bindings.Load(t.Context(), bindings.Options{Root: dir})
	require.NoError(t, err)
	effects := map[string]bindings.Effect{}
	for _, b := range set.Bindings() {
		effects[b.Tool] = b.Effect
	}
	require.Equal(t, map[string]bindings.Effect{
		"greet": "unsafe", "charge": "unsafe", "file_note": "idempotent",
		"request_approval": "replay", "request_api_key": "replay", "review_diagram": "replay",
		"run_plan": "program", "cp__agent_orchestrate": "program", "draw": "idempotent",
	}, effects)
}

func TestWorkersOfTheDemoIgnoreSettingsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	got := quietEnvironment([]string{"PATH=/bin", "ONETURN_CONTEXT=prod", "LOG_LEVEL=error", "LOGS_AS_JSON=true", "HOME=/"})
	require.Equal(t, []string{"PATH=/bin", "HOME=/"}, got)
}

func TestBrokenPromiseIsCountedAndShown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &demo{out: &out}
	d.checkf(true, "the ledger has %s", count(1, "run"))
	d.checkf(false, "the ledger has %s", count(2, "run"))
	require.Equal(t, "   ok the ledger has 1 run\n   NO the ledger has 2 runs\n", out.String())
	require.Equal(t, 2, d.checks)
	require.Equal(t, 1, d.broken)
}

func TestDemoWithoutAWorkerRemovesItsFiles(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	err := runDemo(t.Context(), options{worker: filepath.Join(tmp, "none"), out: &bytes.Buffer{}})
	require.ErrorIs(t, err, os.ErrNotExist)
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NotErrorIs(t, err, exec.ErrNotFound)
}

func TestWorkerThatIsNotFoundIsReportedWithTheFix(t *testing.T) {
	t.Parallel()
	_, err := findWorker(filepath.Join("bin", "worker"))
	require.ErrorContains(t, err, "make build")
	_, err = findWorker(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "-worker PATH")
	self, err := os.Executable()
	require.NoError(t, err)
	path, err := findWorker(self)
	require.NoError(t, err)
	require.Equal(t, self, path)
}
