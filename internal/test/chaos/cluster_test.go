//go:build chaos

package chaos_test

import (
	"fmt"
	"time"

	"github.com/oneturn/oneturn/internal/test/harness"
)

// Sizes of the usual rigs.
func three() setup { return setup{servers: 3, workers: 3, rate: 60, asks: 4} }
func one() setup   { return setup{servers: 1, workers: 3, rate: 60} }

// clusterScenarios break servers.
func clusterScenarios() []scenario {
	return []scenario{
		{"kill-leader-of-journal", "F11", three(), func(r *rig) { r.killServer(journal(r)); r.settle() }},
		{"kill-leader-of-inbound-stream", "F11", three(), func(r *rig) { r.killServer(inbound(r)); r.settle() }},
		{"kill-leader-of-consumer", "F11", three(), func(r *rig) { r.killServer(consumer(r)); r.settle() }},
		{"pause-leader-of-journal", "F12", three(), func(r *rig) { r.pauseServer(journal(r), 12*time.Second); r.settle() }},
		{"pause-leader-of-inbound-stream", "F12", three(), func(r *rig) { r.pauseServer(inbound(r), 6*time.Second); r.settle() }},
		{"kill-each-server-in-turn", "F11", three(), func(r *rig) {
			for _, n := range r.cluster.Nodes() {
				r.killServer(n)
			}
			r.settle()
		}},
		{"kill-all-servers-at-once", "F11", three(), func(r *rig) { r.killAll(); r.settle() }},
		{"kill-single-server", "F10", one(), func(r *rig) {
			for range 2 {
				r.pause(r.jitter(time.Second))
				r.killAll()
			}
			r.settle()
		}},
		{"restart-single-server", "F10", one(), func(r *rig) {
			n := r.cluster.Nodes()[0]
			for range 2 {
				r.pause(r.jitter(time.Second))
				at := r.strike("stop %s gently", n.Name())
				n.Stop()
				n.Start()
				r.recovers(at)
			}
			r.settle()
		}},
	}
}

// killServer kills a server of three, waits until the others continue, and starts it again.
func (r *rig) killServer(n *harness.Node) {
	r.Helper()
	at := r.strike("kill %s", n.Name())
	n.Kill()
	r.recovers(at)
	n.Start()
	r.cluster.WaitReady()
	r.pause(time.Second + r.jitter(time.Second)) // it catches up
}

func (r *rig) pauseServer(n *harness.Node, d time.Duration) {
	r.Helper()
	at := r.strike("pause %s for %s", n.Name(), d)
	n.Pause()
	r.recovers(at)
	r.pause(time.Until(at.Add(d)))
	n.Resume()
	r.goesOn()
}

func (r *rig) killAll() {
	r.Helper()
	at := r.strike("kill %s", fmt.Sprintf("all %d", len(r.cluster.Nodes())))
	for _, n := range r.cluster.Nodes() {
		n.Kill()
	}
	for _, n := range r.cluster.Nodes() {
		n.Start()
	}
	r.recovers(at)
}
