//go:build failpoints

package crash_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// programRow is a row of the table of programs in docs/guarantees.md: a turn whose tool is a program, where its worker dies, and
// what is expected after a clean worker has ended the turn.
type programRow struct {
	name   string
	agent  string // default: of plans
	data   func(effect string) any
	every  bool                         // for each effect of its steps; default: only unsafe
	fails  string                       // failpoints of the first worker
	lives  bool                         // the first worker does not die, and ends the turn
	script func(r *rig, first *process) // what happens to the first worker, if it is more than that
	then   func(r *rig)                 // after its death
	people []oneturntest.Rule
	park   time.Duration

	softStop time.Duration
	sweep    time.Duration
	lease    time.Duration
	damages  string // record that is damaged: the checker finds it

	code    func(effect string) events.Code
	entered func(effect string) map[string]int // tools, by the id of the call
	also    func(t *testing.T, r *rig, facts *oneturntest.Facts)
}

// dies waits until a worker has died of what the row has for it. If nothing is left to do for a while, it will not.
func (r *rig) dies(p *process) {
	r.t.Helper()
	var since time.Time
	require.True(r.t, r.wait(p, func() bool {
		if !r.drained() {
			since = time.Now()
		}
		return !since.IsZero() && time.Since(since) > 3*time.Second
	}), "the worker did not die")
	r.forgotten()
}

// theTurn is the turn of a row.
var theTurn = oneturn.TurnID{App: "app", Chat: "chat", Turn: "turn"}

// run runs a row for the steps of one effect.
func (w *programRow) run(t *testing.T, effect string) {
	t.Helper()
	r := newPrograms(t, newRig(t, func(o *provision.Options) { o.AckWait = cmp.Or(w.lease, o.AckWait) }))
	if w.softStop > 0 {
		r.programs.softStop = w.softStop.String()
	}
	if w.sweep > 0 {
		r.programs.sweep = w.sweep.String()
	}
	r.damaged = w.damages
	if w.people != nil {
		r.answeredBy(0, cmp.Or(w.park, parksSoon), w.people...)
	}
	first := r.start(w.fails)
	r.publishProgram(cmp.Or(w.agent, planner), w.data(effect))
	switch {
	case w.script != nil:
		w.script(r, first)
	case w.lives:
		require.False(t, r.wait(first, r.atRest()), "the worker died")
		r.requireStruck(w.fails)
	default:
		r.dies(first)
	}
	if w.then != nil {
		w.then(r)
	}
	w.expect(t, r, r.settle(), effect)
}

// expect compares a turn that has ended with the row.
func (w *programRow) expect(t *testing.T, r *rig, facts *oneturntest.Facts, effect string) {
	t.Helper()
	want := events.Code("")
	if w.code != nil {
		want = w.code(effect)
	}
	require.Equal(t, want, codeOf(t, facts, facts.Accepted[0].Key()), "code of the turn")
	if w.entered != nil {
		require.Equal(t, w.entered(effect), enteredBySteps(facts), "entries of tools")
	}
	if w.damages == "" {
		requireStoredValues(t, facts)
	}
	if w.also != nil {
		w.also(t, r, facts)
	}
}

// publishProgram publishes the turn of a row.
func (r *rig) publishProgram(agent string, data any) {
	r.t.Helper()
	text, err := json.Marshal(data)
	require.NoError(r.t, err)
	tree, err := events.Decode(text)
	require.NoError(r.t, err)
	_, err = r.client.Publish(r.t.Context(), &oneturn.Turn{TurnID: theTurn, Workflow: "Crash", Agent: agent, Data: tree})
	require.NoError(r.t, err)
	r.accepted = append(r.accepted, oneturntest.Accepted{App: theTurn.App, Chat: theTurn.Chat, Turn: theTurn.Turn, At: time.Now(), MayFail: true})
}

// enteredBySteps counts the entries of tools by the ids of the calls.
func enteredBySteps(facts *oneturntest.Facts) map[string]int {
	n := map[string]int{}
	for _, e := range facts.Ledger {
		if e.Phase == oneturntest.PhaseEnter {
			n[stepOf(e.Call)]++
		}
	}
	return n
}

// stepOf returns the id of a step in its program, by its tool_call_id.
func stepOf(call string) string { return strings.TrimPrefix(call, events.StepID(theTurn.Turn, "")) }

// requireStoredValues checks that what a step got of an earlier one is what is stored of it: the value of each run differs.
func requireStoredValues(t *testing.T, facts *oneturntest.Facts) {
	t.Helper()
	stored := map[string]bool{}
	for _, value := range valuesOf(t, facts, events.KindToolResponse) {
		stored[value] = true
	}
	for call, value := range valuesOf(t, facts, events.KindToolCall) {
		require.True(t, stored[value], "step %s got %q, which no response has", call, value)
	}
}

// valuesOf returns the values in the arguments or the payloads of steps.
func valuesOf(t *testing.T, facts *oneturntest.Facts, kind string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, r := range facts.Journal {
		k, _ := subjects.ParseKey(r.Key)
		step, ok := subjects.StepOfCall(k.Call)
		if k.Kind != kind || k.Private || !ok || r.Err != nil {
			continue
		}
		var event struct {
			Data struct {
				Payload struct {
					Value string    `json:"value"`
					Args  stepInput `json:"tool_args"`
				} `json:"payload"`
			} `json:"data"`
		}
		require.NoError(t, json.Unmarshal(r.Data, &event))
		if value := cmp.Or(event.Data.Payload.Value, event.Data.Payload.Args.Value); value != "" {
			values[step] = value
		}
	}
	return values
}

// codeOfStep is the code in the response of a step.
func codeOfStep(t *testing.T, facts *oneturntest.Facts, step string) events.Code {
	t.Helper()
	return codeOf(t, facts, stepKey(step).String())
}

// secondStepEndsAs checks the code of the second step of a plan.
func secondStepEndsAs(code events.Code) func(*testing.T, *rig, *oneturntest.Facts) {
	return func(t *testing.T, _ *rig, facts *oneturntest.Facts) {
		t.Helper()
		require.Equal(t, code, codeOfStep(t, facts, "1"))
	}
}

// stepKey is the key of a step of the turn of a row.
func stepKey(step string) subjects.Key {
	return subjects.TurnKey(theTurn.App, theTurn.Chat, theTurn.Run, theTurn.Turn).WithCall(subjects.CallOf(step))
}

// contentOf is the content of the response of the turn of a row.
func contentOf(t *testing.T, facts *oneturntest.Facts) string {
	t.Helper()
	for _, r := range facts.Journal {
		if r.Key == stepKey("").Public(events.KindToolResponse) {
			m, err := events.Parse(r.Data)
			require.NoError(t, err)
			var response events.ToolResponse
			require.NoError(t, m.As(&response))
			return response.Content
		}
	}
	require.Fail(t, "no response")
	return ""
}

// stored waits until a record of a step is stored.
func (r *rig) stored(step, kind string) {
	r.t.Helper()
	key := stepKey(step)
	r.until(kind+" of "+step+" is stored", func() bool { return r.storedUnder(key.Public(kind)) })
}

// storedUnder reports whether a record is stored.
func (r *rig) storedUnder(key string) bool {
	r.t.Helper()
	s, err := r.js.Stream(r.t.Context(), r.space.TurnsStream())
	require.NoError(r.t, err)
	_, err = s.GetLastMsgForSubject(r.t.Context(), r.space.JournalSubject(key))
	return err == nil
}

// entries are the entries of the steps of a plan.
func entries(n ...int) map[string]int {
	of := map[string]int{}
	for i, entries := range n {
		if entries > 0 {
			of[strconv.Itoa(i)] = entries
		}
	}
	return of
}

// reentered reports whether a step of an effect runs again that was called and has no response: none of these asks.
func reentered(effect string) bool { return slices.Contains(again, effect) }

// interruptedUnless is the code of a turn of which a step was cut off.
func interruptedUnless(effect string) events.Code {
	if reentered(effect) {
		return ""
	}
	return events.CodeInterrupted
}

func everyStepOnce(string) map[string]int { return entries(1, 1, 1) }

func threeStepsOf(effect string) any { return threeSteps(effect) }

// effectsOf are the effects for which a row is run.
func (w *programRow) effectsOf() []string {
	if !w.every {
		return []string{"unsafe"}
	}
	return stepEffects()
}

// stepEffects are the effects of steps: of those that may run again one, when each point is to be struck once.
func stepEffects() []string {
	if *others <= 1 {
		return []string{"unsafe", "replay", "keyed"}
	}
	return effects
}

// TestProgramsWhoseWorkerDies runs every row of the table of programs in docs/guarantees.md, for each effect of the steps where
// that matters: the first worker dies at a point, a clean one ends the turn.
func TestProgramsWhoseWorkerDies(t *testing.T) {
	t.Parallel()
	for _, w := range programRows() {
		for _, effect := range w.effectsOf() {
			t.Run(w.name+"/"+effect, func(t *testing.T) {
				t.Parallel()
				w.run(t, effect)
			})
		}
	}
}

// TestMatrixOfPrograms kills workers again and again while they run several programs each, until a step of each effect was struck
// often enough at the point.
func TestMatrixOfPrograms(t *testing.T) {
	t.Parallel()
	for _, point := range []string{failpoint.StepCall, failpoint.AfterStepCall, inTool, failpoint.AfterStep, failpoint.AfterStepResponse} {
		for _, workers := range []int{1, 3} {
			if *others <= 1 && (workers > 1) != (point == failpoint.AfterStepResponse) {
				continue // one cell a point, when each is to be struck once
			}
			t.Run(fmt.Sprintf("%s/workers=%d", point, workers), func(t *testing.T) {
				t.Parallel()
				r := newPrograms(t, newRig(t))
				r.kill(cell{point: point, effects: effects}, *others, workers)
				r.settle()
			})
		}
	}
}
