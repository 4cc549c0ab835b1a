//go:build chaos

package chaos_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// linked is a cluster whose links can be cut. Each worker reaches one server only.
func linked() setup {
	return setup{servers: 3, workers: 3, rate: 60, proxies: true, linked: true, asks: 4}
}

// The servers that lead.
func journal(r *rig) *harness.Node { return r.cluster.StreamLeader(r.space.TurnsStream()) }
func inbound(r *rig) *harness.Node { return r.cluster.StreamLeader(r.space.InStream()) }
func consumer(r *rig) *harness.Node {
	return r.cluster.ConsumerLeader(r.space.InStream(), r.space.WorkerConsumer(subjects.DefaultPool))
}

// partitionScenarios cut servers off from each other, and workers from servers.
func partitionScenarios() []scenario {
	return []scenario{
		{"isolate-leader-of-journal", "F13", linked(), func(r *rig) { r.partition("isolate", journal(r), r.cluster.Isolate) }},
		{"isolate-leader-of-inbound-stream", "F13", linked(), func(r *rig) { r.partition("isolate", inbound(r), r.cluster.Isolate) }},
		{"reject-leader-of-consumer", "F13", linked(), func(r *rig) { r.partition("reject", consumer(r), r.cluster.Reject) }},
		{"leader-of-journal-is-mute", "F13", linked(), func(r *rig) {
			r.partition("mute", journal(r), func(n *harness.Node) {
				for _, other := range r.cluster.Others(n) {
					r.cluster.Cut(n, other)
				}
			})
		}},
		{"leader-of-journal-is-deaf", "F13", linked(), func(r *rig) {
			r.partition("deafen", journal(r), func(n *harness.Node) {
				for _, other := range r.cluster.Others(n) {
					r.cluster.Cut(other, n)
				}
			})
		}},
		{"cut-one-link-of-leader", "F13", linked(), cutOneLink},
		{"worker-alone", "F13", proxied(), func(r *rig) {
			at := r.strike("worker 0 alone for %s", 6*ackWait)
			r.proxies[0].Stall(harness.Up)
			r.proxies[0].Stall(harness.Down)
			r.recovers(at) // the others continue
			r.pause(time.Until(at.Add(6 * ackWait)))
			healed := time.Now()
			r.proxies[0].Heal()
			r.goesOn()
			r.settle()
			r.startedNothing(0, at, healed)
		}},
	}
}

// partitionLasts is longer than an election and than a leader takes to find that it is none.
const partitionLasts = 15 * time.Second

// partition takes a server, and the worker that reaches no other, away from the rest. The rest has to continue meanwhile, and the worker must enter no tool.
func (r *rig) partition(how string, n *harness.Node, cut func(*harness.Node)) {
	r.Helper()
	minority := slices.Index(r.cluster.Nodes(), n)
	r.avoid(n)
	at := r.strike("%s %s with worker %d for %s", how, n.Name(), minority, partitionLasts)
	cut(n)
	r.recovers(at)
	r.pause(time.Until(at.Add(partitionLasts)))
	healed := time.Now()
	r.cluster.Heal()
	r.goesOn()
	r.settle()
	r.startedNothing(minority, at, healed)
}

// cutOneLink cuts the journal's leader off from one server of two, which the third one reaches.
// Whether turns continue meanwhile is up to the servers: one that can reach a leader's neighbour
// but not the leader may call elections.
func cutOneLink(r *rig) {
	n := journal(r)
	other := r.cluster.Others(n)[r.rng.IntN(2)]
	r.avoid(n, other)
	at := r.strike("cut between %s and %s for %s", n.Name(), other.Name(), partitionLasts)
	r.cluster.Cut(n, other)
	r.cluster.Cut(other, n)
	r.pause(partitionLasts)
	r.cluster.Heal()
	r.recovers(at)
	r.settle()
}

// avoid has the publisher and the readers of the test connected to another server.
func (r *rig) avoid(nodes ...*harness.Node) {
	r.Helper()
	require.Eventually(r.T, func() bool {
		at := r.nc.ConnectedAddr()
		if r.nc.IsConnected() && slices.ContainsFunc(nodes, func(n *harness.Node) bool { return n.Addr() == at }) {
			_ = r.nc.ForceReconnect() // is seen in the next round
		}
		return r.nc.IsConnected() && !slices.ContainsFunc(nodes, func(n *harness.Node) bool { return n.Addr() == r.nc.ConnectedAddr() })
	}, patience, 100*time.Millisecond)
}

// startedNothing checks the ledger against what a worker may do that reaches no quorum. What
// was claimed before the cut may be entered just after it.
func (r *rig) startedNothing(worker int, cut, healed time.Time) {
	r.Helper()
	const grace = 500 * time.Millisecond
	ledger, err := oneturntest.ReadLedger(r.path("ledger"))
	require.NoError(r.T, err)
	entered := 0
	for _, e := range ledger {
		at := time.Unix(0, e.UnixNS)
		if e.PID != r.workers[worker].PID() || e.Phase != oneturntest.PhaseEnter {
			continue
		}
		entered++
		if at.After(cut.Add(grace)) && at.Before(healed) {
			r.Errorf("I2 worker %d entered the tool of turn %s, %s after it was cut off", worker, e.Turn, at.Sub(cut))
		}
	}
	require.Positive(r.T, entered, "the worker did nothing all the time")
}
