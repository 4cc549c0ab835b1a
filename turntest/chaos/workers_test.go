//go:build chaos

package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/turntest"
)

// workerScenarios replace and break workers.
func workerScenarios() []scenario {
	return []scenario{
		// F26: nothing is lost and nothing interrupted while every worker is replaced.
		{"replace-each-worker-gently", "F26", setup{servers: 1, workers: 3, rate: 150}, func(r *rig) {
			at := r.strike("SIGTERM to each worker in turn")
			for range 4 {
				for i := range r.workers {
					r.replace(i, true)
					r.pause(r.jitter(300 * time.Millisecond))
				}
			}
			r.recovers(at)
			o := r.settle()
			require.Zero(r.T, o.interrupted, "turns interrupted by a drain whose grace is longer than the tool")
			require.Zero(r.T, o.reentered, "tools entered again after a drain")
			require.Zero(r.T, o.abandoned, "tools entered and not left")
		}},
		{"kill-workers-at-random", "F02", one(), func(r *rig) {
			for range 12 {
				r.pause(200*time.Millisecond + r.jitter(600*time.Millisecond))
				r.strike("kill worker")
				r.replace(r.rng.IntN(len(r.workers)), false)
			}
			r.recovers(time.Now())
			r.settle()
		}},
		{"pause-worker-past-its-lease", "F03", one(), func(r *rig) {
			for i := range r.workers {
				at := r.strike("pause worker %d for %s", i, 3*ackWait/2)
				r.workers[i].Pause()
				r.pause(3 * ackWait / 2)
				r.workers[i].Resume()
				r.recovers(at)
			}
			r.settle()
		}},
		{"poison-and-crash-loop", "F22", one(), crashLoop},
		{"delete-consumer", "F17", one(), deleteConsumer},
	}
}

// crashLoop publishes what no worker can read, and turns whose tool kills its worker: the
// former end as dead letters, the latter as effects say, and the rest goes on.
func crashLoop(r *rig) {
	at := r.strike("poison, and tools that kill their worker")
	for i, body := range []string{"", "null", "[]", "{", `{"type":"chat.structured_output_ready","data":{"auto_tool_mode":true}}`, "\xff\xfe", `{"type":"chat.unknown","data":{}}`} {
		subject := r.space.In(subjects.DefaultPool, events.KindStructuredOutputReady, "app", "Chaos", fmt.Sprint("poison-", i))
		_, err := r.js.Publish(r.Context(), subject, []byte(body))
		require.NoError(r.T, err)
		r.poison++
	}
	extra := make([]turntest.Accepted, 0, 2)
	for _, deadly := range []struct {
		effect string
		dies   int
	}{{"unsafe", 1}, {"idempotent", 2}} {
		turn, accepted := r.turn(0)
		turn.Turn, turn.Agent = "deadly-"+deadly.effect, "Agent_"+deadly.effect
		data, ok := turn.Data.(map[string]any)
		require.True(r.T, ok)
		data["dies"] = json.Number(strconv.Itoa(deadly.dies))
		accepted.Turn, accepted.Effect = turn.Turn, deadly.effect
		require.NoError(r.T, r.publish(r.Context(), turn))
		extra = append(extra, accepted)
	}
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		for _, a := range extra {
			if _, err := r.client.Await(ctx, events.TurnID{App: a.App, Chat: a.Chat, Turn: a.Turn}); err != nil {
				ended <- err
				return
			}
		}
		close(ended)
	}()
	r.supervise(ended)
	r.recovers(at)
	r.extra = extra
	o := r.settle()
	require.GreaterOrEqual(r.T, o.interrupted, 1, "the unsafe tool that killed its worker")
	require.GreaterOrEqual(r.T, o.reentered, 1, "the idempotent tool that killed its worker")
}

// supervise restarts workers that have died, as production does, until something has ended.
func (r *rig) supervise(ended <-chan error) {
	r.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			require.NoError(r.T, err)
			return
		case <-tick.C:
		}
		for i := range r.workers {
			select {
			case <-r.workers[i].Done():
				r.replace(i, false)
			default:
			}
		}
	}
}

// deleteConsumer takes the workers' consumer away: they say so and end, and make none of their
// own. Once it is provisioned again, other workers end what is there.
func deleteConsumer(r *rig) {
	at := r.strike("delete the consumer")
	require.NoError(r.T, r.js.DeleteConsumer(r.Context(), r.space.InStream(), r.space.WorkerConsumer(subjects.DefaultPool)))
	for i := range r.workers {
		require.ErrorContains(r.T, r.workers[i].Wait(patience), "exit status 1", "a worker whose consumer is gone has to end")
	}
	require.Contains(r.T, r.logTail(), "worker stopped")
	r.cluster.Provision(withAckWait)
	for i := range r.workers {
		r.replace(i, false)
	}
	r.recovers(at)
	r.settle()
}
