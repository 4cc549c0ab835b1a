//go:build chaos

package gatewaychaos_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

var (
	duration      = flag.Duration("gateway.duration", 20*time.Second, "how long users write and faults are injected")
	sockets       = flag.Int("gateway.sockets", 60, "WebSockets that are open at the same time")
	streams       = flag.Int("gateway.runs", 12, "users, each with a client of AG-UI and a chat")
	gateways      = flag.Int("gateway.gateways", 3, "gateways, 2 or more")
	workers       = flag.Int("gateway.workers", 2, "workers")
	seed          = flag.Uint64("gateway.seed", 0, "seed of the faults and of what users do; 0: a random one")
	patience      = flag.Duration("gateway.patience", 90*time.Second, "bound of every wait for the system to continue")
	gatewayBinary = flag.String("gateway.binary", "../../../bin/gateway", "the command of the gateway")
	workerBinary  = flag.String("gateway.worker", "../../../bin/worker", "the command of the worker")
)

func TestMain(m *testing.M) {
	if harness.RunRole(nil) {
		return
	}
	oneturntest.VerifyNoLeaks(m)
}

// minMemoryRun is how long a run has to be for its memory to be checked: a process needs a while to reach the memory that it uses.
const minMemoryRun = 2 * time.Minute

func TestGatewayChaos(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = uint64(rand.Uint32())
	}
	t.Logf("again with: make gateway-chaos DURATION=%s SOCKETS=%d RUNS=%d SEED=%d", *duration, *sockets, *streams, *seed)
	ctx, cancel := context.WithTimeout(t.Context(), *duration+3**patience)
	defer cancel()
	s := newStage(t, *streams)
	const gap = 3 * time.Second
	faultGap := min(gap, *duration/time.Duration(2*len(faults())))
	s.thinking = min(gap, *duration/10)
	nc := s.cluster.Connect()
	serveTools(t, s.cluster.Connect())
	following, stopFollowing := context.WithCancel(ctx)
	o := startOrchestrator(following, t, nc, newSpace(t), s.journal)
	sampling, stopSampling := context.WithCancel(ctx)
	begun := time.Now()
	var background, users sync.WaitGroup
	background.Go(func() { s.sample(sampling) })
	background.Go(func() {
		s.injectFaults(ctx, begun.Add(*duration), faultGap)
		s.healed.Store(true)
	})
	for n := range *streams {
		tabs := *sockets / *streams
		if n < *sockets%*streams {
			tabs++
		}
		users.Go(func() { s.user(ctx, n, max(1, tabs)) })
	}
	users.Wait()
	stopSampling()
	background.Wait()
	stopFollowing()
	o.wg.Wait()
	s.check(o, begun)
}

// check compares what every client got with the journal, and reports.
func (s *stage) check(o *orchestrator, begun time.Time) {
	s.Helper()
	journal := o.readJournal(s.Context(), s.T)
	for _, c := range s.chats {
		c.check(journal, &s.verdict)
	}
	for _, g := range s.gateways {
		if g.program.ended() {
			s.verdict.Brokenf("G6", "%s has ended by itself", g.program.name)
		}
	}
	warm := begun.Add(*duration / 5)
	first, second := s.gateways[0].memory.Halves(warm)
	s.Logf("memory of %s: %d MiB in the first half, %d MiB in the second", s.gateways[0].program.name, first>>20, second>>20)
	if *duration >= minMemoryRun {
		s.gateways[0].memory.Check(s.gateways[0].program.name, warm, &s.verdict)
	}
	s.Log(s.report())
	const shown = 5 // of each invariant
	violations := s.verdict.Violations()
	of := map[string]int{}
	for _, v := range violations {
		invariant, _, _ := strings.Cut(v, " ")
		if of[invariant]++; of[invariant] <= shown {
			s.Errorf("%s", v)
		}
	}
	if len(violations) > 0 {
		s.Errorf("violations: %v", of)
		for _, g := range s.gateways {
			s.Log(g.program.tail())
		}
		for _, w := range s.workers {
			s.Log(w.program.tail())
		}
	}
}
