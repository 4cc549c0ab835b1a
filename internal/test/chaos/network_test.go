//go:build chaos

package chaos_test

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/test/harness"
)

func proxied() setup { return setup{servers: 1, workers: 3, rate: 60, proxies: true, asks: 4} }

// networkScenarios break what is between workers and the server.
func networkScenarios() []scenario {
	return []scenario{
		{"flapping", "F14", proxied(), func(r *rig) {
			at := r.strike("cut or reset each 500 ms for 8 s")
			for i := range 16 {
				for k, p := range r.proxies {
					if (i+k)%2 == 0 {
						p.Cut()
					} else {
						p.Reset()
					}
				}
				r.pause(500 * time.Millisecond)
			}
			r.recovers(at)
			r.settle()
		}},
		{"partition-workers", "F13", proxied(), func(r *rig) {
			at := r.strike("all workers alone for %s", 2*ackWait)
			for _, p := range r.proxies {
				p.Refuse(true)
				p.Reset()
			}
			r.pause(2 * ackWait)
			for _, p := range r.proxies {
				p.Heal()
			}
			r.recovers(at)
			r.settle()
		}},
		{"half-open-past-the-lease", "F13, F14", proxied(), halfOpen},
		{"delay-200ms", "F14", proxied(), func(r *rig) {
			at := r.strike("delay of 200 ms")
			for _, p := range r.proxies {
				p.Delay(200 * time.Millisecond)
			}
			r.recovers(at)
			r.pause(4 * time.Second)
			r.settle()
		}},
		{"64-kilobytes-a-second", "F14", setup{servers: 1, workers: 3, rate: 60, proxies: true, pad: 2 << 10}, func(r *rig) {
			at := r.strike("each worker at 64 kB/s for 8 s")
			for _, p := range r.proxies {
				p.Limit(64 << 10)
			}
			r.recovers(at)
			r.pause(time.Until(at.Add(8 * time.Second)))
			r.settle()
		}},
		{"half-open-for-30s", "F14", proxied(), func(r *rig) {
			at := r.strike("worker 0 sends nothing, worker 1 gets nothing, for 30 s")
			r.proxies[0].Stall(harness.Up)
			r.proxies[1].Stall(harness.Down)
			r.recovers(at)
			r.pause(time.Until(at.Add(30 * time.Second)))
			for _, p := range r.proxies {
				p.Heal()
			}
			r.goesOn()
			r.settle()
		}},
		{"cut-in-the-middle-of-a-message", "F14", proxied(), func(r *rig) {
			r.strike("resets after a random number of bytes")
			for range 25 {
				p := r.proxies[r.rng.IntN(len(r.proxies))]
				p.CutAfter(harness.Direction(r.rng.IntN(2)), r.rng.Int64N(4<<10))
				r.pause(50*time.Millisecond + r.jitter(200*time.Millisecond))
			}
			r.recovers(time.Now())
			r.settle()
		}},
		{"lost-live-copies", "F16", proxied(), lostCopies},
		{"questions-over-a-broken-network", "F14, F28", proxied(), brokenQuestions},
	}
}

// halfOpen stops the bytes of one worker after the other, and then of all, for longer than the
// lease of what they hold.
func halfOpen(r *rig) {
	for i, d := range []harness.Direction{harness.Up, harness.Down} {
		p := r.proxies[i]
		at := r.strike("worker %d half-open for %s", i, 3*ackWait/2)
		p.Stall(d)
		if r.rng.IntN(2) == 0 {
			p.Stall(1 - d)
		}
		r.pause(3 * ackWait / 2)
		p.Heal() // what was held back arrives now, past the lease
		r.recovers(at)
	}
	at := r.strike("all workers half-open until they notice")
	for _, p := range r.proxies {
		p.Stall(harness.Down)
	}
	r.pause(3 * ackWait)
	for _, p := range r.proxies {
		p.Heal()
	}
	r.recovers(at)
	r.settle()
}

// lostCopies has a reader wait for turns whose live copies never reach it: it reads the journal
// instead. A subscriber that takes nothing any more does not stop the others.
func lostCopies(r *rig) {
	p := harness.NewProxy(r.T, r.cluster.Nodes()[0].Addr())
	reader, err := nats.Connect(p.URL(), connectOptions()...)
	require.NoError(r.T, err)
	defer reader.Close()
	client, err := oneturn.NewClient(reader, oneturn.ClientOptions{})
	require.NoError(r.T, err)
	stuck, err := r.cluster.Connect().SubscribeSync(r.space.EventsPrefix() + ".>") // no client ever reads from it
	require.NoError(r.T, err)
	require.NoError(r.T, stuck.SetPendingLimits(16, 1<<20))

	const waits = 50
	var wg sync.WaitGroup
	first := len(r.load.Accepted()) + 3*r.setup.rate // published in about three seconds
	for i := range waits {
		turn, accepted := r.turn(first + i)
		wg.Go(func() {
			response, err := client.Await(r.Context(), turn.TurnID)
			if err != nil || response.Success == accepted.MayFail {
				r.Errorf("turn %s: %v, %v", turn.Turn, response, err)
			}
		})
	}
	r.pause(time.Second) // the waits have begun
	at := r.strike("a reader that gets nothing for %s", 4*time.Second)
	p.Stall(harness.Down)
	for len(r.load.Accepted()) < first+2*waits && time.Since(at) < patience {
		r.pause(100 * time.Millisecond)
	}
	p.Reset() // what was held back is lost
	p.Heal()
	r.recovers(at)
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		require.Fail(r.T, "a reader whose live copies were lost still waits")
	}
	dropped, err := stuck.Dropped()
	require.NoError(r.T, err)
	require.Positive(r.T, dropped, "the slow subscriber was not slow enough to show anything")
	r.settle()
}
