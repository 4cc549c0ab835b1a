//go:build failpoints

package crash_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

var effects = []string{"unsafe", "replay", "keyed", "idempotent", "none"}

// rig is a server with an audit of all events, a ledger and a log of strikes.
type rig struct {
	t         *testing.T
	server    *oneturntest.Server
	js        jetstream.JetStream
	space     subjects.Space
	client    *oneturn.Client
	dir       string
	slots     int
	workflows string

	park     time.Duration // how long a tool waits in memory
	asks     *asking       // nil: the tools do not ask
	outside  *outside      // nil: the tools are in the worker, or its children
	programs *programs     // nil: turns are single calls
	damaged  string        // key of a record that the test has damaged
	embeds   string        // store of workers that have the server in them
	gaveUp   bool          // turns have no end, and nothing happens
	url      string        // by which processes reach the server, "" for its own

	accepted   []oneturntest.Accepted
	messages   []oneturntest.SentMessage
	n          int
	violations int
}

func newRig(t *testing.T, change ...func(*provision.Options)) *rig {
	t.Helper()
	return newRigOn(t, t.TempDir(), change...)
}

// newRigOn is newRig with a store that a server can be started on again.
func newRigOn(t *testing.T, store string, change ...func(*provision.Options)) *rig {
	t.Helper()
	s := oneturntest.NewServer(t, func(o *embedded.Options) { o.Store = store })
	s.Provision(change...)
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	require.NoError(t, oneturntest.Audit(t.Context(), js, space, 1))
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	r := &rig{t: t, server: s, js: js, space: space, client: client, dir: t.TempDir(), slots: 4, park: time.Minute}
	t.Cleanup(func() { r.logSummary(t) })
	return r
}

func (r *rig) ledger() string  { return filepath.Join(r.dir, fileLedger) }
func (r *rig) strikes() string { return filepath.Join(r.dir, fileStrikes) }
func (r *rig) log() string     { return filepath.Join(r.dir, "log") }
func (r *rig) metrics() string { return filepath.Join(r.dir, "metrics") }

// publish sends n turns of each effect to the workers.
func (r *rig) publish(n int, effects []string, millis int, vars bool) {
	r.t.Helper()
	for range n {
		for _, effect := range effects {
			r.n++
			turn := &oneturn.Turn{
				TurnID:   oneturn.TurnID{App: "app", Chat: "chat-" + strconv.Itoa(r.n%7), Turn: effect + "-" + strconv.Itoa(r.n)},
				Workflow: "Crash", Agent: "Agent_" + effect, Model: "Work",
				Data: map[string]any{"millis": json.Number(strconv.Itoa(millis)), "vars": vars},
			}
			if r.asks != nil {
				turn.Agent, turn.Model, turn.Data = "Asker_"+effect, "Ask", r.asks.data(millis)
			}
			if r.programs != nil {
				turn.Agent, turn.Model, turn.Data = planner, "", plan(effect, stepInput{Millis: millis}, stepInput{Millis: millis})
			}
			if r.outside != nil {
				turn.Model, turn.Data = "Work", r.outside.data(r, turn.Chat, turn.Turn, effect, millis)
			}
			_, err := r.client.Publish(r.t.Context(), turn)
			require.NoError(r.t, err)
			r.accepted = append(r.accepted, oneturntest.Accepted{
				App: "app", Chat: turn.Chat, Turn: turn.Turn, Effect: effect, At: time.Now(), MayFail: r.asks != nil && r.asks.mayFail || r.outside != nil && r.outside.mayFail,
			})
		}
	}
}

// process is a worker process.
type process struct {
	cmd  *exec.Cmd
	done chan error
}

func (r *rig) start(failpoints string) *process {
	r.t.Helper()
	self, err := os.Executable()
	require.NoError(r.t, err)
	c := exec.CommandContext(context.WithoutCancel(r.t.Context()), self)
	c.Env = append(os.Environ(), envURL+"="+cmp.Or(r.url, r.server.URL()), envLedger+"="+r.ledger(), envSlots+"="+strconv.Itoa(r.slots),
		envWorkflows+"="+r.workflows, envMetrics+"="+r.metrics(), envPark+"="+r.park.String(), envStore+"="+r.embeds, envListen+"="+strings.TrimPrefix(r.server.URL(), "nats://"),
		envLog+"="+r.log(), "ONETURN_FAILPOINTS="+failpoints, "ONETURN_FAILPOINT_LOG="+r.strikes())
	c.Env = append(c.Env, r.programs.env()...)
	c.Stderr = os.Stderr
	require.NoError(r.t, c.Start())
	if r.outside != nil && r.outside.strike {
		r.mortal(strconv.Itoa(c.Process.Pid))
	}
	p := &process{cmd: c, done: make(chan error, 1)}
	go func() { p.done <- c.Wait() }()
	r.t.Cleanup(func() { _ = c.Process.Kill() }) // may have ended
	return p
}

// wait waits for the end of the process or until over reports true; then it ends the process
// gently. It reports whether the process was killed.
func (r *rig) wait(p *process, over func() bool) (killed bool) {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(90 * time.Second)
	for {
		select {
		case err := <-p.done:
			var exit *exec.ExitError
			require.ErrorAs(r.t, err, &exit, "a worker ended by itself")
			status, ok := exit.Sys().(syscall.WaitStatus)
			require.True(r.t, ok)
			require.Equal(r.t, syscall.SIGKILL, status.Signal(), "a worker ended otherwise than by its failpoint: %v", err)
			return true
		case <-tick.C:
			if over() {
				if err := p.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
					continue // it was killed just now
				}
				select {
				case err := <-p.done:
					var exit *exec.ExitError
					return errors.As(err, &exit)
				case <-time.After(30 * time.Second):
					require.Fail(r.t, "a worker did not drain")
				}
			}
		case <-limit:
			require.Fail(r.t, "the run does not come to rest")
		}
	}
}

// left returns how many messages are in the inbound stream.
func (r *rig) left() uint64 {
	r.t.Helper()
	s, err := r.js.Stream(r.t.Context(), r.space.InStream())
	require.NoError(r.t, err)
	return s.CachedInfo().State.Msgs
}

func (r *rig) drained() bool { return r.left() == 0 }

// struck counts the strikes of a point by effect.
func (r *rig) struck(point string) map[string]int {
	r.t.Helper()
	byEffect := map[string]int{}
	f, err := os.Open(r.strikes())
	if os.IsNotExist(err) {
		return byEffect
	}
	require.NoError(r.t, err)
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		fields := strings.Fields(scan.Text())
		if len(fields) == 4 && fields[0] == point {
			byEffect[fields[1]]++
		}
	}
	return byEffect
}

// requireStruck checks that the failpoints of a worker have acted: a worker that dies shows it, one that lives does not.
func (r *rig) requireStruck(failpoints string) {
	r.t.Helper()
	for part := range strings.SplitSeq(failpoints, ";") {
		if point, _, ok := strings.Cut(part, "="); ok {
			require.NotEmpty(r.t, r.struck(point), "failpoint %s was not reached", part)
		}
	}
}

// deadline is how long a tool of these tests takes at most, on a busy machine.
const deadline = 20 * time.Second

// idle is how long the turns that wait for answers may do nothing, when every person answers.
const idle = 8 * time.Second

// settle lets a clean worker end everything, then judges what is there.
func (r *rig) settle() *oneturntest.Facts {
	r.t.Helper()
	healed := time.Now()
	r.wait(r.start(""), r.atRest())
	return r.judge(healed)
}

// atRest reports whether everything is settled, or no more will be: a turn whose wake-up is lost is
// the checker's to find.
func (r *rig) atRest() func() bool {
	if r.asks == nil {
		return r.drained
	}
	var last time.Time
	left, ended := uint64(0), -1
	return func() bool {
		now, n := r.left(), r.answered()
		if now > 0 || now != left || n != ended {
			left, ended, last = now, n, time.Now()
		}
		if now > 0 || n < len(r.accepted) && !r.gaveUp && time.Since(last) < idle {
			return false
		}
		r.gaveUp = n < len(r.accepted)
		return true
	}
}

// judge checks what is stored against the promise.
func (r *rig) judge(healed time.Time, acts ...oneturntest.SentAnswer) *oneturntest.Facts {
	r.t.Helper()
	facts, err := oneturntest.Collect(r.t.Context(), r.server.Connect(), r.space, r.ledger())
	require.NoError(r.t, err)
	facts.Accepted, facts.Messages = r.accepted, r.messages
	if r.asks != nil {
		facts.Answers = slices.Concat(acts, r.asks.quiet())
	}
	facts.Healed, facts.Within = healed, deadline+2*time.Second // ack wait: one second
	require.NotEmpty(r.t, facts.Copies)
	require.Empty(r.t, facts.Dead)
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	// Workers and their Python processes, also of workers that were killed.
	for _, v := range append(oneturntest.Check(facts, nil), harness.Orphans(ctx, envLedger+"="+r.ledger())...) {
		if r.damaged != "" && (v.Invariant == "I3" || v.Invariant == "I4") {
			continue // the test has damaged it: it cannot be read, and nothing can be compared with it
		}
		r.violations++
		r.t.Error(v)
	}
	return facts
}

// counted returns the sum of a counter over all workers that ended by themselves.
func (r *rig) counted(name string) (sum int) {
	r.t.Helper()
	f, err := os.Open(r.metrics())
	require.NoError(r.t, err)
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if value, ok := strings.CutPrefix(scan.Text(), name+" "); ok {
			n, err := strconv.Atoi(value)
			require.NoError(r.t, err)
			sum += n
		}
	}
	return sum
}

// resume continues a stopped process and ends it gently.
func (r *rig) resume(p *process) {
	r.t.Helper()
	require.NoError(r.t, p.cmd.Process.Signal(syscall.SIGCONT))
	// Whatever it held is settled or left; it must end when asked to.
	r.wait(p, func() bool { return true })
}
