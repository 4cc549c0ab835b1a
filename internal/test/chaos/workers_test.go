//go:build chaos

package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
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
		{"kill-workers-at-random", "F02", setup{servers: 1, workers: 3, rate: 60, asks: 4}, func(r *rig) {
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
	}
}

// crashLoop publishes what no worker can read, and turns whose tool kills its worker: the
// former end as dead letters, the latter as effects specify, and the rest continues.
func crashLoop(r *rig) {
	at := r.strike("poison, and tools that kill their worker")
	for i, body := range []string{"", "null", "[]", "{", `{"type":"chat.structured_output_ready","data":{"auto_tool_mode":true}}`, "\xff\xfe", `{"type":"chat.unknown","data":{}}`} {
		subject := r.space.In(subjects.DefaultPool, events.KindStructuredOutputReady, "app", "Chaos", fmt.Sprint("poison-", i))
		_, err := r.js.Publish(r.Context(), subject, []byte(body))
		require.NoError(r.T, err)
		r.poison++
	}
	for effect, dies := range map[string]string{"unsafe": "1", "idempotent": "2"} {
		turn := r.special("deadly-"+effect, effect, time.Millisecond, map[string]any{"dies": json.Number(dies)})
		require.NoError(r.T, r.publish(r.Context(), turn))
	}
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		for _, a := range r.extra {
			if _, err := r.client.Await(ctx, oneturn.TurnID{App: a.App, Chat: a.Chat, Turn: a.Turn}); err != nil {
				ended <- err
				return
			}
		}
		close(ended)
	}()
	r.supervise(ended)
	r.recovers(at)
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
