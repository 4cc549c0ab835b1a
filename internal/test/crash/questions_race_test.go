//go:build failpoints

package crash_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

// signalled is an act that waits until the test closes a channel.
func signalled(value any) (act oneturntest.Act, now chan struct{}) {
	now = make(chan struct{})
	return oneturntest.Act{Value: value, When: func(ctx context.Context) {
		select {
		case <-now:
		case <-ctx.Done():
		}
	}}, now
}

// patience bounds a wait for what has to happen soon.
const patience = 30 * time.Second

// until waits for something.
func (r *rig) until(what string, so func() bool) {
	r.t.Helper()
	require.Eventually(r.t, so, patience, 10*time.Millisecond, "%s", what)
}

// standsStill waits until a process that stops itself does: it reports that a little before, and what
// continues it until then is lost.
func (r *rig) standsStill(p *process) {
	r.t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return // not Linux
	}
	r.until("the process stands still", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
}

// goesOn continues a process that has stopped itself.
func (r *rig) goesOn(p *process) {
	r.t.Helper()
	r.standsStill(p)
	require.NoError(r.t, p.cmd.Process.Signal(syscall.SIGCONT))
}

// behindProxy has the processes that are started from now on reach the server by a connection that
// can be cut, and returns what cuts it and lets others connect: a process that stands still would be
// given messages.
func (r *rig) behindProxy() (cut func()) {
	r.t.Helper()
	p := harness.NewProxy(r.t, strings.TrimPrefix(r.server.URL(), "nats://"))
	r.url = p.URL()
	return func() {
		p.Reset()
		r.url = ""
		r.forgotten()
	}
}

// forgotten waits until the server knows that no worker is connected: what is published before is delivered to one that has died,
// and to another one only after its lease.
func (r *rig) forgotten() {
	r.t.Helper()
	stream, err := r.js.Stream(r.t.Context(), r.space.InStream())
	require.NoError(r.t, err)
	r.until("the server has forgotten the worker", func() bool {
		pulls := 0
		consumers := stream.ListConsumers(r.t.Context())
		for info := range consumers.Info() {
			pulls += info.NumWaiting
		}
		return consumers.Err() == nil && pulls == 0
	})
}

// acts waits until n acts of the person are done.
func (r *rig) acts(n int) []oneturntest.SentAnswer {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	acts, err := r.asks.human.AwaitAnswers(ctx, n)
	require.NoError(r.t, err)
	return acts
}

// end waits until all turns have ended, and the processes with them.
func (r *rig) end(processes ...*process) {
	r.t.Helper()
	over := r.atRest()
	for _, p := range processes {
		r.wait(p, over)
	}
	r.settle()
}

// F28: one key decides between the owner that lets go and the answer that wakes it: here the answer is
// first, and the owner, which knows nothing of it, must not let go.
func TestAnswerThatComesWhileItsOwnerIsAboutToParkIsNotLost(t *testing.T) {
	t.Parallel()
	act, now := signalled(decision{Yes: true})
	r := newRig(t, noHurry).answeredBy(1, parksSoon, oneturntest.Rule{Acts: []oneturntest.Act{act}})
	r.answeredWhileStopped(failpoint.BeforePark, 1, now)
}

// F28: an owner that was woken by one answer and waits for the next is parked as the next epoch. What
// was stored before that epoch began has woken the last one, and has gone: the owner looks again.
func TestAnswerThatComesBetweenTwoEpochsOfAnOwnerIsNotLost(t *testing.T) {
	t.Parallel()
	act, now := signalled(decision{Yes: true})
	const waits = 2 * time.Second // long enough for the first answer to find it in memory
	r := newRig(t, noHurry).answeredBy(2, waits,
		oneturntest.Rule{Ask: "1", Acts: []oneturntest.Act{yes(0)}}, oneturntest.Rule{Ask: "2", Acts: []oneturntest.Act{act}})
	r.answeredWhileStopped(failpoint.BeforeContinue, 2, now)
}

// answeredWhileStopped stops the owner at a point, has the last of some answers given to another
// worker, and lets the owner continue: it has not missed it.
func (r *rig) answeredWhileStopped(point string, answers int, now chan<- struct{}) {
	r.t.Helper()
	cut := r.behindProxy()
	owner := r.stopped(point, "keyed", 1)
	cut()
	other := r.start("")
	close(now)
	require.Equal(r.t, events.AnswerAccepted, r.acts(answers)[answers-1].Result.Code)
	r.until("the answer is acknowledged", func() bool { return r.left() == 1 })
	r.goesOn(owner)
	r.end(other, owner)
	require.Equal(r.t, 1, r.entered())
}

// F03: an owner that has lost its turn must not let it go without the next owner: the message
// would be gone when that one dies.
func TestOwnerThatHasLostItsTurnDoesNotParkIt(t *testing.T) {
	t.Parallel()
	act, now := signalled(decision{Yes: true})
	r := newAsking(t, 1, parksSoon, act)
	r.slots = 1
	zombie := r.stopped(failpoint.BeforePark, "keyed", 1)
	r.park = parksLate
	next := r.start("")
	r.until("the next owner asks", func() bool { return r.noted(oneturntest.PhaseAsk) == 2 })
	r.goesOn(zombie)
	r.wait(zombie, func() bool { return true })
	require.NoError(t, next.cmd.Process.Kill())
	r.wait(next, func() bool { return false })
	last := r.start("")
	close(now)
	r.end(last)
	require.Equal(t, 3, r.entered())
}

// F03: a turn ends while another worker takes it over, which has read before that it has not: it reads
// again, and does not enter the tool.
func TestTurnThatEndsWhileItIsTakenOverIsNotRunAgain(t *testing.T) {
	t.Parallel()
	r := newAsking(t, 0, parksLate)
	r.slots = 1
	zombie := r.stopped(afterLastAnswer, "keyed", 1)
	next := r.start(failpoint.AfterSeal + "=stop@1")
	r.until("the next owner has sealed", func() bool { return r.struck(failpoint.AfterSeal)["keyed"] == 1 })
	r.goesOn(zombie)
	r.until("the turn has ended", func() bool { return r.answered() == 1 })
	r.goesOn(next)
	r.end(zombie, next)
	require.Equal(t, 1, r.entered())
}

// F05: an owner whose heartbeats are lost gets the answer before the next one, which has read
// it too: the code after it runs once.
func TestAnswerIsHandedToOneOfTwoRunsOfAReplayTool(t *testing.T) {
	t.Parallel()
	act, now := signalled(decision{Yes: true})
	r := newAsking(t, 1, parksLate, act)
	r.slots = 1
	owner := r.start(failpoint.Heartbeat + "=drop_req@*")
	r.publish(1, []string{"replay"}, 1500, false) // it is in the code after the answer when the next one reads it
	r.until("the owner asks", func() bool { return r.noted(oneturntest.PhaseAsk) == 1 })
	next := r.start(failpoint.BeforeTaken + "=stop@1")
	r.until("the next owner asks", func() bool { return r.noted(oneturntest.PhaseAsk) == 2 })
	close(now)
	r.until("the next owner has read the answer", func() bool { return r.struck(failpoint.BeforeTaken)["replay"] == 1 })
	r.until("the turn has ended", func() bool { return r.answered() == 1 })
	r.goesOn(next)
	r.end(owner, next)
	require.Equal(t, 1, r.noted(oneturntest.PhaseAnswered))
}

// F28: TestAnswerThatDoesNotFitIsRefusedAndTheNextOneStands by a worker process as by handlers.
func TestAnswerThatDoesNotFitIsRefusedAndTheNextOneStands(t *testing.T) {
	t.Parallel()
	r := newAsking(t, 1, parksSoon, answerWith(map[string]any{"yes": "perhaps", "by": "Eve"}, 0), yes(0))
	r.publish(1, effects, 1, false)
	worker := r.start("")
	acts := r.acts(2 * len(effects))
	r.end(worker)
	codes := map[events.AnswerCode]int{}
	for _, s := range acts {
		codes[s.Result.Code]++
	}
	require.Equal(t, map[events.AnswerCode]int{events.AnswerInvalid: len(effects), events.AnswerAccepted: len(effects)}, codes)
}

// noted counts the lines of a phase in the ledger.
func (r *rig) noted(phase string) (n int) {
	r.t.Helper()
	entries, err := oneturntest.ReadLedger(r.ledger())
	require.NoError(r.t, err)
	for _, e := range entries {
		if e.Phase == phase {
			n++
		}
	}
	return n
}
