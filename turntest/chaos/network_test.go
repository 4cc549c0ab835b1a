//go:build chaos

package chaos_test

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/turntest"
)

func proxied() setup { return setup{servers: 1, workers: 3, rate: 60, proxies: true} }

// networkScenarios break what is between workers and the server.
func networkScenarios() []scenario {
	return []scenario{
		{"cut-workers", "F14", proxied(), func(r *rig) {
			for range 6 { // flapping
				at := r.strike("cut and reset")
				for i, p := range r.proxies {
					if (len(r.strikes)+i)%2 == 0 {
						p.Cut()
					} else {
						p.Reset()
					}
				}
				r.pause(r.jitter(500 * time.Millisecond))
				r.recovers(at)
			}
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
		{"half-open-past-the-lease", "F13, F14", proxied(), func(r *rig) {
			for i, d := range []turntest.Direction{turntest.Up, turntest.Down} {
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
				p.Stall(turntest.Down)
			}
			r.pause(3 * ackWait)
			for _, p := range r.proxies {
				p.Heal()
			}
			r.recovers(at)
			r.settle()
		}},
		{"delay-200ms", "F14", proxied(), func(r *rig) {
			at := r.strike("delay of 200 ms")
			for _, p := range r.proxies {
				p.Delay(200 * time.Millisecond)
			}
			r.recovers(at)
			r.pause(4 * time.Second)
			r.settle()
		}},
		{"cut-in-the-middle-of-a-message", "F14", proxied(), func(r *rig) {
			r.strike("resets after a random number of bytes")
			for range 25 {
				p := r.proxies[r.rng.IntN(len(r.proxies))]
				p.CutAfter(turntest.Direction(r.rng.IntN(2)), r.rng.Int64N(4<<10))
				r.pause(50*time.Millisecond + r.jitter(200*time.Millisecond))
			}
			r.recovers(time.Now())
			r.settle()
		}},
		{"lost-live-copies", "F16", proxied(), lostCopies},
	}
}

// lostCopies has a reader wait for turns whose live copies never reach it: it reads the journal
// instead. A subscriber that takes nothing any more keeps nobody from going on.
func lostCopies(r *rig) {
	p := turntest.NewProxy(r.T, r.cluster.Nodes()[0].Addr())
	reader, err := nats.Connect(p.URL(), connectOptions()...)
	require.NoError(r.T, err)
	defer reader.Close()
	client, err := oneturn.NewClient(reader, oneturn.ClientOptions{})
	require.NoError(r.T, err)
	stuck, err := r.cluster.Connect().SubscribeSync(r.space.EventsPrefix() + ".>") // nobody ever takes from it
	require.NoError(r.T, err)
	require.NoError(r.T, stuck.SetPendingLimits(16, 1<<20))

	const waits = 50
	var wg sync.WaitGroup
	first := len(r.load.Accepted()) + 3*r.setup.rate // published in about three seconds
	for i := range waits {
		turn, accepted := r.turn(first + i)
		wg.Go(func() {
			said, err := client.Await(r.Context(), turn.TurnID)
			if err != nil || said.Success == accepted.MayFail {
				r.Errorf("turn %s: %v, %v", turn.Turn, said, err)
			}
		})
	}
	r.pause(time.Second) // the waits have begun
	at := r.strike("a reader that gets nothing for %s", 4*time.Second)
	p.Stall(turntest.Down)
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
