//go:build failpoints

package crash_test

import (
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
)

// F30: the outcome of a call whose other side dies is unknown: it ends as an error, whatever its
// effect and its attempts, and what comes after is served by the next process.
func TestCallWhoseCounterpartIsKilledIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{kindNATS, kindHTTP, kindMCP} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).callsOutside(kind, ", timeout: 3s, max_attempts: 3")
			worker := r.start("")
			struck, pids := r.underway(30_000)
			for pid := range pids {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
			if kind != kindMCP { // whose workers start another one
				r.startCounterpart()
			}
			r.publish(1, outsideEffects(), 1, false)
			r.wait(worker, r.drained)
			facts := r.settleOutside()
			for _, turn := range struck {
				require.Contains(t, []events.Code{events.CodeToolError, events.CodeTimeout}, codeOf(t, facts, turn), turn)
			}
			require.Equal(t, 2*len(outsideEffects()), r.entered())
		})
	}
}

// F30: a service that stands still for longer than its call may take continues afterwards: its answer is dropped, and the turn keeps its response.
func TestAnswerOfAServiceThatWasPausedIsTooLate(t *testing.T) {
	t.Parallel()
	r := newRig(t).callsOutside(kindNATS, ", timeout: 1s, max_attempts: 3")
	worker := r.start("")
	struck, pids := r.underway(500)
	signal := func(s syscall.Signal) {
		for pid := range pids {
			require.NoError(t, syscall.Kill(pid, s))
		}
	}
	signal(syscall.SIGSTOP)
	require.Eventually(t, r.drained, deadline, 10*time.Millisecond, "the calls do not end")
	signal(syscall.SIGCONT)
	require.Eventually(t, func() bool { return r.noted(oneturntest.PhaseExit) == len(struck) }, deadline, 10*time.Millisecond, "the service does not continue")
	r.publish(1, outsideEffects(), 1, false)
	r.wait(worker, r.drained)
	facts := r.settleOutside()
	for _, turn := range struck {
		require.Equal(t, events.CodeTimeout, codeOf(t, facts, turn), turn)
	}
	require.Equal(t, 2*len(outsideEffects()), r.entered())
}

// underway publishes a turn of each effect that may fail, and waits until their calls were entered. It
// returns the keys of the turns and the processes that have them.
func (r *rig) underway(millis int) (turns []string, pids map[int]bool) {
	r.t.Helper()
	r.outside.mayFail = true
	r.publish(1, outsideEffects(), millis, false)
	r.outside.mayFail = false
	for _, a := range r.accepted {
		turns = append(turns, a.Key())
	}
	require.Eventually(r.t, func() bool { return r.entered() == len(turns) }, deadline, 5*time.Millisecond, "the tools are not entered")
	entries, err := oneturntest.ReadLedger(r.ledger())
	require.NoError(r.t, err)
	pids = map[int]bool{}
	for _, e := range entries {
		pids[e.PID] = true
	}
	return turns, maps.Clone(pids)
}

// F03: the worker stands still while the tool is at work elsewhere, and continues when its turn has gone to
// another worker: the answer that waits for it is refused.
func TestWorkerThatIsPausedInACallToAnotherProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t).callsOutside(kindHTTP, "")
	r.slots = 1
	for i, effect := range outsideEffects() {
		zombie := r.start("")
		before := r.entered()
		r.publish(1, []string{effect}, 2000, false) // ms: the signal has to come before the answer, on a busy machine too
		require.Eventually(t, func() bool { return r.entered() > before }, deadline, 5*time.Millisecond, "the tool is not entered")
		require.NoError(t, zombie.cmd.Process.Signal(syscall.SIGSTOP))
		r.standsStill(zombie)
		r.wait(r.start(""), r.drained)
		r.resume(zombie)
		require.Equal(t, i+1, r.counted("oneturn_late_results_total"), "answers that came when the turn had gone")
	}
	r.settleOutside()
	require.Equal(t, 1+2+2, r.entered(), "unsafe once, the others again")
}
