//go:build chaos

package chaos_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
)

// brokenQuestions has people asked and answering while connections are cut and stand still past
// the lease, a worker is killed and the server starts again.
func brokenQuestions(r *rig) {
	at := r.strike("cut or reset each 300 ms for 3 s")
	for i := range 10 {
		for k, p := range r.proxies {
			if (i+k)%2 == 0 {
				p.Cut()
			} else {
				p.Reset()
			}
		}
		r.pause(300 * time.Millisecond)
	}
	r.recovers(at)
	for i, d := range []harness.Direction{harness.Up, harness.Down} {
		at := r.strike("worker %d half-open for %s", i, 3*ackWait/2)
		r.proxies[i].Stall(d)
		r.pause(3 * ackWait / 2)
		r.proxies[i].Heal()
		r.recovers(at)
	}
	at = r.strike("kill worker")
	r.replace(r.rng.IntN(len(r.workers)), false)
	r.recovers(at)
	at = r.strike("kill server")
	r.cluster.Nodes()[0].Kill()
	r.cluster.Nodes()[0].Start()
	r.recovers(at)
	o := r.settle()
	require.Positive(r.T, o.parked)
	require.Greater(r.T, o.asked, o.parked, "turns that were answered in memory")
}
