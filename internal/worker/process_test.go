package worker_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// Environment of a worker process: this test binary, started again.
const (
	envURL    = "TEST_WORKER_URL"
	envLedger = "TEST_WORKER_LEDGER"
	envEffect = "TEST_WORKER_EFFECT"
	envStop   = "TEST_WORKER_SOFT_STOP"
)

func TestMain(m *testing.M) {
	if oneturntest.RunRole(map[string]oneturntest.Role{"retry": retryWorker}) {
		return
	}
	if url := os.Getenv(envURL); url != "" {
		if err := workerProcess(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:forbidigo // the main function of a worker process
		}
		return
	}
	oneturntest.VerifyNoLeaks(m)
}

// work is the input of the tool of worker processes.
type work struct {
	Millis int `json:"millis"` // how long the tool takes
}

// workerProcess runs a worker whose tool writes to the ledger at entry and exit.
func workerProcess(url string) error {
	nc, err := nats.Connect(url, nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		return err
	}
	defer nc.Close()
	ledger, err := os.OpenFile(os.Getenv(envLedger), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer ledger.Close()
	note := func(phase, chat, turn string) { fmt.Fprintf(ledger, "%s %d %s %s\n", phase, os.Getpid(), chat, turn) }
	tool := oneturn.NewTool("work", func(ctx context.Context, in work) (string, error) {
		id := tool.Info(ctx)
		note("enter", id.Chat, id.Turn)
		select {
		case <-time.After(time.Duration(in.Millis) * time.Millisecond):
		case <-ctx.Done():
			note("stopped", id.Chat, id.Turn)
			return "", ctx.Err()
		}
		note("exit", id.Chat, id.Turn)
		return "done", nil
	}, oneturn.ToolOptions{Workflow: "Work", Agent: "Worker", Model: "Work", Effect: oneturn.Effect(os.Getenv(envEffect))})
	softStop, err := time.ParseDuration(os.Getenv(envStop))
	if err != nil {
		return err
	}
	w, err := oneturn.NewWorker(nc, oneturn.Config{Tools: []oneturn.Tool{tool}, SoftStop: softStop})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // a worker process
	defer stop()
	return w.Run(ctx)
}

// pool is a set of worker processes with one ledger.
type pool struct {
	t      *testing.T
	env    []string
	ledger string
	mu     sync.Mutex
	procs  map[int]*exec.Cmd
}

func newPool(t *testing.T, s *oneturntest.Server, effect string) *pool {
	t.Helper()
	p := &pool{t: t, ledger: filepath.Join(t.TempDir(), "ledger"), procs: map[int]*exec.Cmd{}}
	p.env = append(os.Environ(), envURL+"="+s.URL(), envLedger+"="+p.ledger, envEffect+"="+effect, envStop+"=3s")
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range p.procs {
			_ = c.Process.Kill() // may have ended
			_ = c.Wait()
		}
	})
	return p
}

func (p *pool) start(n int) {
	p.t.Helper()
	self, err := os.Executable()
	require.NoError(p.t, err)
	for range n {
		c := exec.CommandContext(context.WithoutCancel(p.t.Context()), self)
		c.Env, c.Stderr = p.env, os.Stderr
		require.NoError(p.t, c.Start())
		p.mu.Lock()
		p.procs[c.Process.Pid] = c
		p.mu.Unlock()
	}
}

// end sends a signal to a process and waits for its end.
func (p *pool) end(pid int, sig syscall.Signal) error {
	p.mu.Lock()
	c := p.procs[pid]
	delete(p.procs, pid)
	p.mu.Unlock()
	require.NoError(p.t, c.Process.Signal(sig))
	return c.Wait()
}

type ledgerLine struct {
	phase      string
	pid        int
	chat, turn string
}

func (p *pool) lines() []ledgerLine {
	p.t.Helper()
	f, err := os.Open(p.ledger)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(p.t, err)
	defer f.Close()
	var lines []ledgerLine
	for scan := bufio.NewScanner(f); scan.Scan(); {
		fields := strings.Fields(scan.Text())
		require.Len(p.t, fields, 4)
		pid, err := strconv.Atoi(fields[1])
		require.NoError(p.t, err)
		lines = append(lines, ledgerLine{fields[0], pid, fields[2], fields[3]})
	}
	return lines
}

// count returns how often a phase of a turn stands in the ledger.
func (p *pool) count(phase, turn string) (n int) {
	for _, l := range p.lines() {
		if l.phase == phase && l.turn == turn {
			n++
		}
	}
	return n
}

// entered waits until a turn's tool was entered and returns the process.
func (p *pool) entered(turn string) (pid int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		for _, l := range p.lines() {
			if l.phase == "enter" && l.turn == turn {
				pid = l.pid
			}
		}
		return pid != 0
	}, 20*time.Second, 5*time.Millisecond)
	return pid
}

func workTurn(key string, d time.Duration) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID:   oneturn.TurnID{App: "app", Chat: "chat", Turn: key},
		Workflow: "Work", Agent: "Worker", Model: "Work", Data: map[string]any{"millis": number(d.Milliseconds())},
	}
}

// F06: see docs/faults.md.
func TestTwentyPublishersOfOneTurnToThreeWorkerProcessesRunItOnce(t *testing.T) {
	t.Parallel()
	s := server(t)
	p := newPool(t, s, "unsafe")
	p.start(3)
	var clients []*oneturn.Client
	for i := range 4 {
		c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{WithoutMsgID: i != 0})
		require.NoError(t, err)
		clients = append(clients, c)
	}
	for round := range 10 {
		one := workTurn(fmt.Sprint("round", round), 20*time.Millisecond)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				c := clients[1+i%3]
				if round == 9 { // once with Nats-Msg-Id
					c = clients[0]
				}
				copied := *one
				if _, err := c.Publish(t.Context(), &copied); err != nil {
					t.Errorf("publish: %v", err)
				}
			})
		}
		wg.Wait()
		require.True(t, await(t, clients[0], one.TurnID).Success)
	}
	requireDrained(t, s)
	for round := range 10 {
		require.Equal(t, 1, p.count("enter", fmt.Sprint("round", round)))
	}
}

// F02: see docs/faults.md.
func TestUnsafeToolIsEnteredOnceWhenItsWorkerIsKilledInsideIt(t *testing.T) {
	t.Parallel()
	s := server(t)
	p := newPool(t, s, "unsafe")
	p.start(2)
	c := client(t, s)
	one := workTurn("t", time.Minute)
	publish(t, c, one)
	require.Error(t, p.end(p.entered("t"), syscall.SIGKILL))
	r := await(t, c, one.TurnID)
	require.Equal(t, events.CodeInterrupted, r.Code)
	require.Contains(t, r.Content, "may or may not have happened")
	requireDrained(t, s)
	require.Equal(t, 1, p.count("enter", "t"))
}

// F02: see docs/faults.md.
func TestIdempotentToolRunsAgainWhenItsWorkerIsKilledInsideIt(t *testing.T) {
	t.Parallel()
	s := server(t)
	p := newPool(t, s, "idempotent")
	p.start(2)
	c := client(t, s)
	one := workTurn("t", 1500*time.Millisecond)
	publish(t, c, one)
	require.Error(t, p.end(p.entered("t"), syscall.SIGKILL))
	r := await(t, c, one.TurnID)
	require.True(t, r.Success)
	requireDrained(t, s)
	require.Equal(t, 2, p.count("enter", "t"))
}

// F26: TestDrainLetsShortToolsFinishAndReleasesTheOthers is rule 15 of docs/journal.md.
func TestDrainLetsShortToolsFinishAndReleasesTheOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, effect string
		takes        time.Duration
		enters       int
		code         events.Code
	}{
		{"short", "unsafe", 300 * time.Millisecond, 1, ""},
		{"long and unsafe", "unsafe", time.Minute, 1, events.CodeInterrupted},
		{"long and idempotent", "idempotent", 4 * time.Second, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			p := newPool(t, s, c.effect)
			p.start(1)
			cl := client(t, s)
			one := workTurn("t", c.takes)
			publish(t, cl, one)
			pid := p.entered("t")
			p.start(1)
			require.NoError(t, p.end(pid, syscall.SIGTERM))
			require.Equal(t, c.code, await(t, cl, one.TurnID).Code)
			requireDrained(t, s)
			require.Equal(t, c.enters, p.count("enter", "t"))
		})
	}
}

func TestCancelStopsARunningToolAndEndsAnUnclaimedTurn(t *testing.T) {
	t.Parallel()
	s := server(t)
	p := newPool(t, s, "idempotent")
	p.start(2)
	c := client(t, s)
	one, two := workTurn("running", time.Minute), workTurn("unclaimed", 0)
	publish(t, c, one)
	p.entered("running")
	for _, id := range []*oneturn.Turn{one, two} {
		_, err := c.Cancel(t.Context(), &oneturn.Cancel{TurnID: id.TurnID, Workflow: "Work", Reason: "changed my mind"})
		require.NoError(t, err)
		r := await(t, c, id.TurnID)
		require.Equal(t, events.CodeCancelled, r.Code)
		require.Contains(t, r.Content, "changed my mind")
	}
	publish(t, c, two)
	requireDrained(t, s)
	require.Zero(t, p.count("enter", "unclaimed"))
	require.Equal(t, 1, p.count("stopped", "running"))
}

// TestCancelReachesARunningToolWhenEverySlotIsTaken: its message has to wait for a slot.
func TestCancelReachesARunningToolWhenEverySlotIsTaken(t *testing.T) {
	t.Parallel()
	s := server(t)
	hang := oneturn.NewTool("hang", func(ctx context.Context, _ work) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, oneturn.ToolOptions{Workflow: "Work", Agent: "Worker", Model: "Work"})
	w := start(t, s, oneturn.Config{Tools: []oneturn.Tool{hang}, Slots: 1, SoftStop: time.Millisecond})
	c := client(t, s)
	one, two := workTurn("one", 0), workTurn("two", 0)
	publish(t, c, one)
	require.Eventually(t, func() bool { return running(t, s, "one") }, 10*time.Second, 5*time.Millisecond)
	publish(t, c, two)
	require.NoError(t, w.Ready())
	_, err := c.Cancel(t.Context(), &oneturn.Cancel{TurnID: one.TurnID, Workflow: "Work"})
	require.NoError(t, err)
	require.Equal(t, events.CodeCancelled, await(t, c, one.TurnID).Code)
	require.Eventually(t, func() bool { return running(t, s, "two") }, 10*time.Second, 5*time.Millisecond)
}

// running reports whether a turn of workTurn is claimed and has not ended.
func running(t *testing.T, s *oneturntest.Server, turn string) bool {
	t.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	kv, err := kvstore.Open(s.Connect(), space)
	require.NoError(t, err)
	defer kv.Close()
	held, err := idempotency.Load(t.Context(), kv, subjects.TurnKey("app", "chat", "", turn))
	require.NoError(t, err)
	return held.Claim != nil && held.Response == nil
}

// F03: see docs/faults.md.
func TestPausedOwnerThatContinuesStoresNothing(t *testing.T) {
	t.Parallel()
	s := server(t)
	p := newPool(t, s, "idempotent")
	p.start(2)
	c := client(t, s)
	one := workTurn("t", 700*time.Millisecond)
	publish(t, c, one)
	zombie := p.entered("t")
	require.NoError(t, syscall.Kill(zombie, syscall.SIGSTOP))
	r := await(t, c, one.TurnID)
	require.True(t, r.Success)
	require.NoError(t, syscall.Kill(zombie, syscall.SIGCONT))
	require.Eventually(t, func() bool { return p.count("exit", "t") == 2 }, 10*time.Second, 10*time.Millisecond)
	requireDrained(t, s)
	require.Equal(t, r, await(t, c, one.TurnID))
}
