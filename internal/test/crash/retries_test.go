//go:build failpoints

package crash_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// The turn of a row and its retry: the second of three steps fails in the turn, and succeeds in the retry.
const (
	repaired = "repaired" // file without which the second step fails
	again1   = "turn~retry1"
)

// retryRow is a row of the table of retries in docs/guarantees.md: the worker of a retry dies at a point, a clean one ends the retry.
type retryRow struct {
	name  string
	fails string // failpoints of the first worker of the retry
	lives bool   // it does not die, and ends the retry
	die   bool   // in the second step, instead
	cut   bool   // the second step is called when the worker dies, so its effect decides
	ran   int    // how often its tool was entered then
	every bool   // for each effect
}

func retryRows() []retryRow {
	return []retryRow{
		{name: "R1 before the claim", fails: failpoint.BeforeClaim + kill},
		{name: "R2 claim stored and not confirmed", fails: failpoint.Claim + kill},
		{name: "R2 claimed", fails: failpoint.AfterClaim + kill},
		{name: "R3 program with the kept results stored and not confirmed", fails: failpoint.Program + kill},
		{name: "R3 program with the kept results stored, answer lost", fails: failpoint.Program + dropAck, lives: true},
		{name: "R3 program with the kept results lost", fails: failpoint.Program + dropReq, lives: true},
		{name: "R3 program with the kept results stored", fails: failpoint.AfterProgram + kill, every: true},
		{name: "R4 call of the first step that runs stored and not confirmed", fails: failpoint.StepCall + kill, cut: true, every: true},
		{name: "R4 first step that runs called", fails: failpoint.AfterStepCall + kill, cut: true, every: true},
		{name: "R4 in the first step that runs", die: true, cut: true, ran: 1, every: true},
		{name: "R4 first step that runs returned", fails: failpoint.AfterStep + kill, cut: true, ran: 1, every: true},
		{name: "R5 response of the first step that runs stored and not confirmed", fails: failpoint.StepResponse + kill, every: true},
		{name: "R5 first step that runs ended", fails: failpoint.AfterStepResponse + kill, every: true},
		{name: "R6 response of the retry stored and not confirmed", fails: failpoint.Finish + kill},
		{name: "R6 response of the retry stored", fails: failpoint.AfterFinish + kill},
	}
}

// TestRetriesWhoseWorkerDies runs every row of the table of retries in docs/guarantees.md: no step that has finished is entered again,
// and the retry has one response.
func TestRetriesWhoseWorkerDies(t *testing.T) {
	t.Parallel()
	for _, w := range retryRows() {
		of := (&programRow{every: w.every}).effectsOf()
		for _, effect := range of {
			t.Run(w.name+"/"+effect, func(t *testing.T) {
				t.Parallel()
				w.run(t, effect)
			})
		}
	}
}

func (w *retryRow) run(t *testing.T, effect string) {
	t.Helper()
	r := newPrograms(t, newRig(t))
	second := stepInput{Needs: repaired}
	if w.die {
		second.Die = 1
	}
	clean := r.start("")
	r.publishProgram(planner, plan(effect, stepInput{}, second, stepInput{}))
	require.False(t, r.wait(clean, func() bool { return r.ended(theTurn.Turn) && r.drained() }), "the worker died")
	r.signal(repaired)

	first := r.start(w.fails)
	r.publishRetry()
	if w.lives {
		require.False(t, r.wait(first, func() bool { return r.ended(again1) && r.drained() }), "the worker died")
		r.requireStruck(w.fails)
	} else {
		r.dies(first)
	}
	w.expect(t, r.settle(), effect)
}

// expect compares the turn and its retry with the row.
func (w *retryRow) expect(t *testing.T, facts *oneturntest.Facts, effect string) {
	t.Helper()
	step := func(id string) string { return events.StepID(again1, id) }
	want, code := map[string]int{"0": 1, "1": 1, step("1"): 1, step("2"): 1}, events.Code("")
	switch {
	case w.cut && reentered(effect):
		want[step("1")] = w.ran + 1
	case w.cut:
		want[step("1")], code = w.ran, events.CodeInterrupted
		delete(want, step("2"))
		maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
	}
	require.Equal(t, want, enteredBySteps(facts), "entries of tools")
	require.Equal(t, events.CodeUserError, codeOf(t, facts, keyOfTurn(theTurn.Turn).String()), "code of the turn")
	require.Equal(t, code, codeOf(t, facts, keyOfTurn(again1).String()), "code of the retry")
	requireStoredValues(t, facts)
	responses := 0
	for _, r := range facts.Journal {
		k, _ := subjects.ParseKey(r.Key)
		if k.OfTurn() == keyOfTurn(again1) && k.Call == subjects.SingleCall && k.Kind == events.KindToolResponse {
			responses++
			require.Contains(t, string(r.Data), `"copied_from":"turn#0"`)
		}
	}
	require.Equal(t, 1, responses)
}

func keyOfTurn(turn string) subjects.Key {
	return subjects.TurnKey(theTurn.App, theTurn.Chat, theTurn.Run, turn)
}

// ended reports whether a turn has its response.
func (r *rig) ended(turn string) bool {
	r.t.Helper()
	return r.storedUnder(keyOfTurn(turn).Public(events.KindToolResponse))
}

// publishRetry publishes the retry of the turn, once a worker answers.
func (r *rig) publishRetry() {
	r.t.Helper()
	r.until("a worker answers", func() bool {
		retried, err := r.client.Retry(r.t.Context(), &oneturn.Retry{TurnID: theTurn})
		return err == nil && retried.Turn == again1
	})
	r.accepted = append(r.accepted, oneturntest.Accepted{App: theTurn.App, Chat: theTurn.Chat, Turn: again1, At: time.Now(), MayFail: true})
}
