//go:build chaos

package chaos_test

import (
	"time"

	"github.com/oneturn/oneturn/subjects"
)

// membershipScenarios change who leads and who belongs to the cluster, as operators do.
func membershipScenarios() []scenario {
	return []scenario{
		{"leaders-step-down", "F11", three(), stepDown},
		{"server-removed-and-returned", "F11", three(), removeServer},
	}
}

// stepDown has every leader give its place to another server, several times.
func stepDown(r *rig) {
	for round := range 3 {
		at := r.strike("leaders step down, round %d", round)
		r.cluster.StepDown(r.space.TurnsStream(), "")
		r.pause(r.jitter(300 * time.Millisecond))
		r.cluster.StepDown(r.space.InStream(), "")
		r.pause(r.jitter(300 * time.Millisecond))
		r.cluster.StepDown(r.space.InStream(), r.space.WorkerConsumer(subjects.DefaultPool))
		r.pause(r.jitter(300 * time.Millisecond))
		r.cluster.StepDown(r.space.TimersStream(), "")
		r.cluster.StepDownMeta()
		r.recovers(at)
	}
	r.settle()
}

// removeServer takes a server out of the cluster for good, and brings it back as a new one.
func removeServer(r *rig) {
	n := r.cluster.Nodes()[r.rng.IntN(len(r.cluster.Nodes()))]
	at := r.strike("remove %s", n.Name())
	r.cluster.Remove(n)
	r.recovers(at)
	r.pause(time.Second)
	at = r.strike("%s returns as a new server", n.Name())
	r.cluster.Return(n)
	r.recovers(at)
	r.settle()
}
