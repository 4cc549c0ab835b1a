//go:build chaos

package chaos_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// stormScenarios break nothing: whatever is interrupted or changes hands is a violation.
func stormScenarios() []scenario {
	// The lease is long, so that a machine that is slow for a moment loses none.
	return []scenario{{"duplicates-resumes-cancels", "F06", setup{servers: 1, workers: 3, rate: 60, ackWait: 15 * time.Second}, storm}}
}

// storm publishes turns many times at the same time, has turns resumed that a worker holds, and cancels
// turns that run.
func storm(r *rig) {
	r.hit = map[string]bool{}
	at := r.strike("60 turns 12 times each, resumes and cancels of running turns")
	clients := make([]*oneturn.Client, 4)
	for i := range clients {
		var err error
		clients[i], err = oneturn.NewClient(r.cluster.Connect(connectOptions()...), oneturn.ClientOptions{WithoutMsgID: true})
		require.NoError(r.T, err)
	}
	const turns, copies, running = 60, 12, 10
	for n := range turns {
		turn := r.special("storm-"+strconv.Itoa(n), effects[n%len(effects)], 5*time.Millisecond, nil)
		var wg sync.WaitGroup
		for i := range copies {
			wg.Go(func() {
				copied := *turn
				if _, err := clients[i%len(clients)].Publish(r.Context(), &copied); err != nil {
					r.Errorf("publish: %v", err)
				}
			})
		}
		wg.Wait()
	}
	var held, unwanted []*oneturn.Turn
	for n := range running {
		held = append(held, r.special("held-"+strconv.Itoa(n), effects[n%len(effects)], 1500*time.Millisecond, nil))
		unwanted = append(unwanted, r.special("unwanted-"+strconv.Itoa(n), effects[n%len(effects)], 8*time.Second, nil)) // if it were not cancelled
		r.extra[len(r.extra)-1].MayFail = true
	}
	for _, turn := range append(held, unwanted...) {
		require.NoError(r.T, r.publish(r.Context(), turn))
	}
	r.entered(append(held, unwanted...)...)
	for _, turn := range held {
		body, err := events.EncodeResume(&events.Resume{TurnID: events.TurnID(turn.TurnID), Workflow: turn.Workflow}, time.Now())
		require.NoError(r.T, err)
		subject := r.space.In(subjects.DefaultPool, events.KindResume, turn.App, turn.Workflow, turn.Chat)
		_, err = r.js.Publish(r.Context(), subject, body)
		require.NoError(r.T, err)
	}
	for _, turn := range unwanted {
		_, err := r.client.Cancel(r.Context(), &oneturn.Cancel{TurnID: turn.TurnID, Workflow: turn.Workflow})
		require.NoError(r.T, err)
	}
	r.recovers(at)
	r.settle()
}

// special makes a turn besides the turns of the load. More is added to its data.
func (r *rig) special(key, effect string, takes time.Duration, more map[string]any) *oneturn.Turn {
	r.Helper()
	turn, accepted := r.turn(0)
	turn.Turn, turn.Agent, accepted.Turn, accepted.Effect = key, "Agent_"+effect, key, effect
	data, ok := turn.Data.(map[string]any)
	require.True(r.T, ok)
	data["millis"] = json.Number(strconv.FormatInt(takes.Milliseconds(), 10))
	maps.Copy(data, more)
	r.extra = append(r.extra, accepted)
	return turn
}

// entered waits until the tool of each turn was entered and returns the processes by turn key.
func (r *rig) entered(turns ...*oneturn.Turn) map[string]int {
	r.Helper()
	pids := map[string]int{}
	var missing []string
	require.Eventually(r.T, func() bool {
		ledger, err := oneturntest.ReadLedger(r.path("ledger"))
		require.NoError(r.T, err)
		for _, e := range ledger {
			pids[e.Turn] = e.PID
		}
		missing = missing[:0]
		for _, turn := range turns {
			if pids[turn.Turn] == 0 {
				missing = append(missing, turn.Turn)
			}
		}
		return len(missing) == 0
	}, patience, 20*time.Millisecond, "not entered: %s", fmt.Sprint(missing))
	return pids
}
