//go:build chaos

package gatewaychaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/test/harness"
)

// fault breaks something for a while and heals it.
type fault struct {
	name string
	do   func(ctx context.Context, s *stage, rng *rand.Rand) string // returns what it did
}

// faults are all kinds of faults. The first gateway is never ended, since its memory is measured.
func faults() []fault {
	return []fault{
		{"kill a gateway", func(ctx context.Context, s *stage, rng *rand.Rand) string {
			return s.restart(ctx, s.restartable(rng), syscall.SIGKILL, rng)
		}},
		{"kill a worker", func(ctx context.Context, s *stage, rng *rand.Rand) string {
			return s.restart(ctx, s.anyWorker(rng).program, syscall.SIGKILL, rng)
		}},
		{"cut clients off", cutClients},
		{"stall a gateway's connection to NATS", stallGateway},
		{"kill NATS", func(ctx context.Context, s *stage, rng *rand.Rand) string {
			n := s.cluster.Nodes()[0]
			n.Kill()
			_ = pause.For(ctx, time.Duration(rng.IntN(1000))*time.Millisecond)
			n.Start()
			return "NATS"
		}},
		{"pause a gateway", func(ctx context.Context, s *stage, rng *rand.Rand) string {
			return suspend(ctx, s.anyGateway(rng).program, rng)
		}},
		{"drain a gateway", func(ctx context.Context, s *stage, rng *rand.Rand) string {
			return s.restart(ctx, s.restartable(rng), syscall.SIGTERM, rng)
		}},
		{"pause a worker past its leases", func(ctx context.Context, s *stage, rng *rand.Rand) string {
			return suspend(ctx, s.anyWorker(rng).program, rng)
		}},
		{"break a gateway's connection to NATS", func(_ context.Context, s *stage, rng *rand.Rand) string {
			g := s.anyGateway(rng)
			g.nats.Reset()
			return g.program.name
		}},
		{"break a connection to NATS in the middle of a message", func(ctx context.Context, s *stage, rng *rand.Rand) string {
			g := s.anyGateway(rng)
			g.nats.CutAfter(harness.Down, rng.Int64N(20_000))
			_ = pause.For(ctx, time.Second)
			g.nats.Heal()
			return g.program.name
		}},
		{"restart NATS gently", func(_ context.Context, s *stage, _ *rand.Rand) string {
			n := s.cluster.Nodes()[0]
			n.Stop()
			n.Start()
			return "NATS"
		}},
	}
}

// restartable returns a gateway other than the first one, whose memory is watched.
func (s *stage) restartable(rng *rand.Rand) *program {
	return s.gateways[1+rng.IntN(len(s.gateways)-1)].program
}

func (s *stage) anyWorker(rng *rand.Rand) *workerProcess { return s.workers[rng.IntN(len(s.workers))] }

// restart ends a program with a signal, and starts it again.
func (s *stage) restart(ctx context.Context, p *program, signal syscall.Signal, rng *rand.Rand) string {
	p.end(signal)
	_ = pause.For(ctx, time.Duration(rng.IntN(1500))*time.Millisecond)
	if err := p.start(); err != nil {
		s.verdict.Brokenf("G6", "%s", err)
	}
	return p.name
}

// suspend stops a program with SIGSTOP for some seconds.
func suspend(ctx context.Context, p *program, rng *rand.Rand) string {
	d := 3*time.Second + time.Duration(rng.IntN(3000))*time.Millisecond
	p.signal(syscall.SIGSTOP)
	_ = pause.For(ctx, d)
	p.signal(syscall.SIGCONT)
	return fmt.Sprintf("%s for %s", p.name, d)
}

func cutClients(ctx context.Context, s *stage, rng *rand.Rand) string {
	g := s.anyGateway(rng)
	switch rng.IntN(3) {
	case 0:
		g.proxy.Reset()
	case 1:
		g.proxy.Cut()
	default: // in the middle of a frame
		g.proxy.CutAfter(harness.Down, rng.Int64N(5_000))
		_ = pause.For(ctx, 500*time.Millisecond)
		g.proxy.Heal()
	}
	return g.program.name
}

// stallGateway lets nothing of NATS reach a gateway for some seconds, so that the others have newer events.
func stallGateway(ctx context.Context, s *stage, rng *rand.Rand) string {
	g := s.anyGateway(rng)
	g.nats.Stall(harness.Down)
	_ = pause.For(ctx, 2*time.Second+time.Duration(rng.IntN(2000))*time.Millisecond)
	g.nats.Heal()
	return g.program.name
}

// injectFaults injects faults in random order until a time, each kind once at least. It returns when everything works again.
func (s *stage) injectFaults(ctx context.Context, until time.Time, gap time.Duration) {
	rng := rand.New(rand.NewPCG(*seed, 1<<32))
	all := faults()
	for n := 0; ctx.Err() == nil && (n < len(all) || time.Now().Before(until)); n++ {
		if n%len(all) == 0 {
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		f := all[n%len(all)]
		s.count("fault: " + f.name)
		begun := time.Now()
		what := f.do(ctx, s, rng)
		s.Logf("%s %s: %s", begun.Format("15:04:05.000"), f.name, what)
		_ = pause.For(ctx, gap/2+time.Duration(rng.Int64N(int64(gap))))
	}
	for _, g := range s.gateways {
		g.proxy.Heal()
		g.nats.Heal()
	}
}
