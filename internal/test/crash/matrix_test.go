//go:build failpoints

package crash_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
)

var (
	hits   = flag.Int("crash.hits", 3, "kills a cell of the matrix with one worker")
	others = flag.Int("crash.others", 1, "kills a cell with Python tools or three workers")
)

// cell is a point of the path, with the effects whose turns come by.
type cell struct {
	point   string
	effects []string
	first   string // point at which another worker dies before, so that this one is reached
	vars    bool   // the tool changes a context variable
	unknown bool   // the effect is not known at the point
}

var again = []string{"keyed", "idempotent", "none"}

func cells() []cell {
	return []cell{
		{point: failpoint.BeforeClaim, effects: effects},
		{point: failpoint.AfterClaim, effects: effects},
		{point: inTool, effects: effects},
		{point: failpoint.AfterTool, effects: effects},
		{point: failpoint.AfterDelta, effects: effects, vars: true},
		{point: failpoint.AfterMerge, effects: effects, vars: true},
		{point: failpoint.AfterFinish, effects: effects},
		{point: failpoint.AfterAck, effects: effects, unknown: true},
		{point: failpoint.AfterSeal, effects: append([]string{"replay"}, again...), first: inTool},
		{point: failpoint.AfterTakeover, effects: append([]string{"replay"}, again...), first: inTool},
	}
}

// F01: TestMatrixKillAtEveryPointOfThePathKeepsThePromise kills the only worker again and again,
// until each effect was struck often enough at the point, then lets a clean one end the rest.
func TestMatrixKillAtEveryPointOfThePathKeepsThePromise(t *testing.T) {
	t.Parallel()
	for _, c := range cells() {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.kill(c, *hits, 1)
			r.settle()
		})
	}
}

// F01: TestMatrixWithThreeWorkers is the same with three workers that all die at the point.
func TestMatrixWithThreeWorkers(t *testing.T) {
	t.Parallel()
	for _, c := range cells() {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.kill(c, *others, 3)
			r.settle()
		})
	}
}

// backlog is how many turns may wait for workers that are killed at their first or second turn.
const backlog = 20

// kill starts workers, so many at a time, that die at the point until each effect of the cell was struck n times.
func (r *rig) kill(c cell, n, workers int) {
	r.t.Helper()
	enough := func() bool {
		struck := r.struck(c.point)
		if c.unknown {
			return struck["-"] >= n*len(c.effects)
		}
		return !slices.ContainsFunc(c.effects, func(e string) bool { return struck[e] < n })
	}
	missing := func() []string {
		struck := r.struck(c.point)
		if c.unknown {
			return c.effects
		}
		return slices.DeleteFunc(slices.Clone(c.effects), func(e string) bool { return struck[e] >= n })
	}
	deadline := time.Now().Add(4 * time.Minute)
	for i := 0; !enough(); i++ {
		require.True(r.t, time.Now().Before(deadline), "point %s was not reached by %v", c.point, missing())
		if c.first == "" && r.left() >= backlog { // of effects that were struck already: they would come first again and again
			r.wait(r.start(""), r.drained)
		}
		failpoints := fmt.Sprintf("%s=kill@%d", c.point, 1+i%2)
		if c.first != "" && i%2 == 0 {
			failpoints = c.first + "=kill@1"
		}
		processes := make([]*process, workers)
		for k := range processes {
			processes[k] = r.start(failpoints)
		}
		for _, p := range processes {
			r.feed(p, missing, c.vars)
		}
	}
}

// feed publishes turns until the process has died of its failpoint, or for a while: what it
// waits for, for example the turns of dead workers, may have run out.
func (r *rig) feed(p *process, effects func() []string, vars bool) {
	r.t.Helper()
	begin := time.Now()
	last := begin.Add(-time.Minute)
	r.wait(p, func() bool {
		wanted := effects()
		if len(wanted) > 0 && r.left() < backlog && time.Since(last) > 50*time.Millisecond {
			r.publish(2, wanted, 5, vars)
			last = time.Now()
		}
		return len(wanted) == 0 || time.Since(begin) > 5*time.Second
	})
}

// F09: an unknown outcome is neither a failure
// nor a success.
func TestDroppedAcknowledgementsAndRequestsOfEveryWrite(t *testing.T) {
	t.Parallel()
	for _, point := range []string{failpoint.Claim, failpoint.Finish, failpoint.Seal, failpoint.Takeover} {
		for _, what := range []string{"drop_ack", "drop_req"} {
			t.Run(point+"/"+what, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.publish(8, effects, 5, false)
				if point == failpoint.Seal || point == failpoint.Takeover {
					for range 3 {
						r.wait(r.start(inTool+"=kill@2"), r.drained)
					}
				}
				r.wait(r.start(point+"="+what+"@odd"), r.drained)
				struck := r.struck(point)
				require.Positive(t, struck["-"], "the point was not reached")
				r.settle()
			})
		}
	}
}

// F13: results are stored again and again as long as their worker lives. A worker that has to end before
// one is stored leaves the message to the next one.
func TestWorkerThatEndsBeforeItsResultsAreStoredLeavesTheMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.publish(1, effects, 5, false)
	r.wait(r.start(failpoint.Finish+"=drop_req@*"), func() bool { return r.struck(failpoint.Finish)["-"] >= len(effects) })
	r.settle()
}

// F03: the owner is stopped past its lease at a point (C1, C2, C6, C7, C8 and C9 of
// docs/guarantees.md), and continues after another worker has ended the turn.
func TestZombieThatIsContinuedAfterItsTurnWentToAnotherWorker(t *testing.T) {
	t.Parallel()
	for point, late := range map[string]bool{ // whether its response comes second
		failpoint.BeforeClaim: false, failpoint.Claim: true, failpoint.AfterClaim: true, inTool: true,
		failpoint.AfterTool: true, failpoint.Finish: false, failpoint.AfterFinish: false,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.slots = 1
			for _, effect := range effects {
				zombie := r.stopped(point, effect, 5)
				r.wait(r.start(""), r.drained)
				r.resume(zombie)
			}
			r.settle()
			refused := 0
			if late {
				refused = len(effects)
			}
			require.Equal(t, refused, r.counted("oneturn_late_results_total"), "responses of zombies that were refused")
		})
	}
}

// stopped publishes a turn to a worker that stops itself at a point of it.
func (r *rig) stopped(point, effect string, millis int) *process {
	r.t.Helper()
	zombie := r.start(point + "=stop@1")
	reached := func() int {
		struck := r.struck(point)
		return struck[effect] + struck["-"] // not every point knows the effect
	}
	before := reached()
	r.publish(1, []string{effect}, millis, false)
	require.Eventually(r.t, func() bool { return reached() > before }, 20*time.Second, 10*time.Millisecond)
	r.standsStill(zombie)
	return zombie
}

// F03: the owner is stopped in its tool and continues while the next owner is in the tool. One of
// the two stores the response, the other is refused, and the message is acknowledged after that.
func TestZombieThatIsContinuedWhileTheNextOwnerRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.slots = 1
	for i, effect := range again {
		zombie := r.stopped(inTool, effect, 1500)
		next := r.start("")
		require.Eventually(t, func() bool { return r.entered() == 2*(i+1) }, 20*time.Second, 10*time.Millisecond, "the next owner has not entered the tool")
		require.NoError(t, zombie.cmd.Process.Signal(syscall.SIGCONT))
		r.wait(next, r.drained)
		r.resume(zombie)
	}
	r.settle()
	require.Equal(t, len(again), r.counted("oneturn_late_results_total"))
}

// F05: an owner whose heartbeats are lost on their way continues while its messages are
// delivered again and again.
func TestToolRunsAsOftenAsItsEffectAllowsWhenHeartbeatsAreLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const mute = failpoint.Heartbeat + "=drop_req@*"
	one, two := r.start(mute), r.start(mute)
	r.publish(1, effects, 5000, false) // five ack waits
	r.wait(one, r.drained)
	r.wait(two, r.drained)
	r.settle()
	require.Positive(t, r.counted("oneturn_redeliveries_total"))
	require.Greater(t, r.entered(), len(effects), "tools that may run again were not entered again: nothing was shown")
}

// entered counts the entries in the ledger.
func (r *rig) entered() int { return r.noted(oneturntest.PhaseEnter) }

// F01: the same with tools in separate processes, which must not outlive their worker.
func TestMatrixWithPythonTools(t *testing.T) {
	t.Parallel()
	for _, c := range cells() {
		if c.point == inTool || c.first == inTool {
			c.first = failpoint.AfterClaim // the failpoint of the Go tool is not in Python
		}
		if c.point == inTool {
			continue
		}
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.workflows = pythonTools(t)
			r.kill(c, *others, 1)
			r.settle()
		})
	}
}

// pythonTools writes a folder with one Python tool for each effect; the tools write the
// ledger as the Go tool does.
func pythonTools(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	var manifest strings.Builder
	manifest.WriteString("agents:\n")
	for _, e := range effects {
		fmt.Fprintf(&manifest, "  Agent_%s: {model: Work}\n", e)
	}
	manifest.WriteString("models:\n  Work:\n    type: object\n    properties: {millis: {type: integer}, vars: {type: boolean}}\ntools:\n")
	for _, e := range effects {
		fmt.Fprintf(&manifest, "  - {name: work_%[1]s, kind: python, agent: Agent_%[1]s, file: work.py, function: work, effect: %[1]s}\n", e)
	}
	const code = `import json, os, time
import oneturn

def note(phase, call):
    line = {"phase": phase, "app": call.app_id, "chat": call.chat_id, "turn": call.turn, "key": call.idempotency_key,
            "token": call.fencing_token, "epoch": call.epoch, "pid": os.getpid(), "ns": time.time_ns()}
    fd = os.open(os.environ["CRASH_LEDGER"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(fd, (json.dumps(line) + "\n").encode())
    os.close(fd)

def work(millis, vars=False, context_variables=None):
    call = oneturn.call()
    note("enter", call)
    time.sleep(millis / 1000)
    if vars:
        context_variables.set("last", call.turn)
    note("exit", call)
    return "done"
`
	dir := filepath.Join(root, "Crash")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "tools"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "oneturn.yaml"), []byte(manifest.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tools", "work.py"), []byte(code), 0o600))
	return root
}
