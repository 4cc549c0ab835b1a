//go:build chaos

package chaos_test

import (
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

// zombieScenarios have an owner continue after its turn went to another worker, at the two
// points where it would do harm if it were allowed to.
func zombieScenarios() []scenario {
	return []scenario{
		{"pause-in-tool-past-its-lease", "F03", one(), pauseInTool},
		{"claim-arrives-while-its-redelivery-runs", "F03, F14", setup{servers: 1, workers: 3, rate: 60, proxies: true}, lateClaim},
	}
}

// pauseInTool stops the worker inside a tool until another one has ended its turn. Then the
// tool returns, and its result is late.
func pauseInTool(r *rig) {
	for _, effect := range []string{"unsafe", "idempotent"} {
		turn := r.special("stops-"+effect, effect, time.Millisecond, map[string]any{"stops": true})
		require.NoError(r.T, r.publish(r.Context(), turn))
		pid := r.entered(turn)[turn.Turn]
		i := slices.IndexFunc(r.workers, func(w *oneturntest.Process) bool { return w.PID() == pid })
		at := r.strike("worker %d stops in the tool of an %s turn", i, effect)
		_, err := r.client.Await(r.Context(), turn.TurnID)
		require.NoError(r.T, err)
		r.workers[i].Resume()
		r.recovers(at)
	}
	r.settle()
}

// lateClaim holds back what a worker sends: the claims of turns that it has got arrive when
// another worker has claimed them under a later delivery and is inside their tools.
func lateClaim(r *rig) {
	at := r.strike("worker 0 sends nothing for %s", 3*ackWait/2)
	r.proxies[0].Stall(harness.Up)
	turns := make([]*oneturn.Turn, 0, 24)
	for n := range cap(turns) { // the worker that is cut off gets its share of them
		turn := r.special("late-"+strconv.Itoa(n), []string{"idempotent", "keyed"}[n%2], 2*ackWait, nil)
		require.NoError(r.T, r.publish(r.Context(), turn))
		turns = append(turns, turn)
	}
	r.entered(turns...) // those that worker 0 got, by their redelivery
	r.proxies[0].Heal()
	r.recovers(at)
	o := r.settle()
	require.Positive(r.T, o.redelivered, "worker 0 got none of the turns")
}
