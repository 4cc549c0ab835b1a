//go:build failpoints

package crash_test

import (
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
)

const (
	kill    = "=kill@1"
	kill2   = "=kill@2"
	dropAck = "=drop_ack@1"
	dropReq = "=drop_req@1"
)

// programRows are the rows of programs whose steps ask no questions.
func programRows() []programRow {
	return slices.Concat(rowsBeforeSteps(), rowsOfSteps(), rowsOfGroups(), rowsOfEnds(), rowsOfCancels())
}

// rowsBeforeSteps are P1 to P5: nothing of the program is called.
func rowsBeforeSteps() []programRow {
	row := func(name, fails string) programRow {
		return programRow{name: name, fails: fails, data: threeStepsOf, entered: everyStepOnce}
	}
	write := func(name, point, how string) programRow {
		w := row(name, point+how)
		w.lives = how != kill
		return w
	}
	invalid := func(name, fails string) programRow {
		return programRow{
			name: name, fails: fails,
			data: func(string) any {
				return map[string]any{"type": "tool_calls", "calls": []any{map[string]any{"tool_name": "unknown"}}}
			},
			code:    func(string) events.Code { return events.CodeValidationFailed },
			entered: func(string) map[string]int { return map[string]int{} },
		}
	}
	planned := func(name, fails string, asked int) programRow {
		w := prompt(name, fails)
		w.also = func(t *testing.T, r *rig, _ *oneturntest.Facts) {
			t.Helper()
			require.Equal(t, asked, r.programs.models.calls("planner"), "the planner was asked")
			require.Equal(t, 1, r.programs.models.calls("responder"), "the responder was asked")
		}
		return w
	}
	return []programRow{
		row("P1 before the claim", failpoint.BeforeClaim+kill),
		row("P1 claim stored and not confirmed", failpoint.Claim+kill),
		row("P1 claimed", failpoint.AfterClaim+kill),
		invalid("P2 invalid, claim stored and not confirmed", failpoint.Claim+kill),
		invalid("P2 invalid, response stored and not confirmed", failpoint.Finish+kill),
		planned("P3 planner not asked yet", failpoint.BeforePlanner+kill, 1),
		planned("P3 planner asked", failpoint.AfterPlannerReply+kill, 2),
		planned("P4 planner's reply stored", failpoint.AfterPlanner+kill, 1),
		planned("P4 planner's reply stored and not confirmed", failpoint.StepResponse+kill, 1),
		write("P5 program stored and not confirmed", failpoint.Program, kill),
		write("P5 program stored, answer lost", failpoint.Program, dropAck),
		write("P5 program lost", failpoint.Program, dropReq),
		row("P5 program stored", failpoint.AfterProgram+kill),
	}
}

// prompt is a row of a turn that is planned first, and whose answer an agent writes.
func prompt(name, fails string) programRow {
	return programRow{
		name: name, fails: fails, agent: prompted, entered: everyStepOnce,
		data: func(string) any { return map[string]any{"prompt": "Do three things."} },
	}
}

// rowsOfSteps are P6 to P9: between two steps, and in one, for each effect.
func rowsOfSteps() []programRow {
	row := func(name, fails string) programRow {
		return programRow{name: name, fails: fails, every: true, data: threeStepsOf, entered: everyStepOnce}
	}
	// cut is a row whose second step is called when the worker dies, after it was entered so many times.
	cut := func(name, fails string, before int) programRow {
		w := row(name, fails)
		w.code = interruptedUnless
		w.entered = func(effect string) map[string]int {
			if reentered(effect) {
				return entries(1, before+1, 1)
			}
			return entries(1, before)
		}
		return w
	}
	inside := cut("P8 in the tool", "", 1)
	inside.data = func(effect string) any { return plan(effect, stepInput{}, stepInput{Die: 1}, stepInput{}) }
	rows := []programRow{
		row("P6 before the first step", failpoint.AfterProgram+kill),
		row("P6 after the first step", failpoint.AfterStepResponse+kill),
		row("P6 after the second step", failpoint.AfterStepResponse+kill2),
		cut("P7 call stored and not confirmed", failpoint.StepCall+kill2, 0),
		cut("P8 called", failpoint.AfterStepCall+kill2, 0),
		inside,
		cut("P8 returned", failpoint.AfterStep+kill2, 1),
		row("P9 response stored and not confirmed", failpoint.StepResponse+kill2),
	}
	for name, fails := range map[string]string{
		"P7 call stored, answer lost": failpoint.StepCall + "=drop_ack@2", "P7 call lost": failpoint.StepCall + "=drop_req@2",
		"P9 response stored, answer lost": failpoint.StepResponse + "=drop_ack@2", "P9 response lost": failpoint.StepResponse + "=drop_req@2",
	} {
		w := row(name, fails)
		w.every, w.lives = false, true
		rows = append(rows, w)
	}
	return rows
}

// rowsOfGroups are P10 to P12: steps that run at the same time.
func rowsOfGroups() []programRow {
	return []programRow{{
		// g[0] has ended, g[1] kills the worker while g[2] is in its tool, g[3] has not begun.
		name: "P10 some ended, some in the tool, some not begun", every: true, agent: lead,
		data: func(effect string) any {
			return orchestration(effect, "collect", stepInput{}, stepInput{Until: "entered-g2", Die: 1}, stepInput{Millis: 300}, stepInput{})
		},
		code: interruptedUnless,
		entered: func(effect string) map[string]int {
			if reentered(effect) {
				return map[string]int{"g[0]": 1, "g[1]": 2, "g[2]": 2, "g[3]": 1, "last": 1}
			}
			return map[string]int{"g[0]": 1, "g[1]": 1, "g[2]": 1, "g[3]": 1}
		},
	}, {
		// g[0] has won when the worker dies, g[1] is in its tool: it is not entered again, whatever its effect.
		name: "P11 race that is won", every: true, agent: lead, fails: failpoint.AfterStepResponse + kill,
		data: func(effect string) any {
			return orchestration(effect, "first_success", stepInput{Until: "entered-g1"}, stepInput{Until: "never"})
		},
		entered: func(string) map[string]int { return map[string]int{"g[0]": 1, "g[1]": 1, "last": 1} },
		also: func(t *testing.T, _ *rig, facts *oneturntest.Facts) {
			t.Helper()
			require.Equal(t, events.CodeCancelled, codeOfStep(t, facts, "g[1]"))
			require.Equal(t, valuesOf(t, facts, events.KindToolResponse)["g[0]"], valuesOf(t, facts, events.KindToolCall)["last"])
		},
	}, {
		// Both have succeeded when the worker dies: the one that was stored first stays the winner.
		name: "P11 race with two successes", agent: lead, fails: failpoint.AfterStepResponse + kill2,
		data: func(effect string) any {
			return orchestration(effect, "first_success", stepInput{Until: "entered-g1"}, stepInput{Until: "entered-g0"})
		},
		entered: func(string) map[string]int { return map[string]int{"g[0]": 1, "g[1]": 1, "last": 1} },
		also: func(t *testing.T, _ *rig, facts *oneturntest.Facts) {
			t.Helper()
			values := valuesOf(t, facts, events.KindToolResponse)
			require.Equal(t, values[firstOf(facts, "g[0]", "g[1]")], valuesOf(t, facts, events.KindToolCall)["last"])
		},
	}, {
		name: "P12 one failed, another one open", every: true, agent: lead,
		data: func(effect string) any {
			return orchestration(effect, "collect", stepInput{Fail: true}, stepInput{Until: "failed", Die: 1})
		},
		script: func(r *rig, first *process) {
			r.stored("g[0]", events.KindToolResponse)
			r.signal("failed")
			r.dies(first)
		},
		code: func(string) events.Code { return events.CodeUserError },
		entered: func(effect string) map[string]int {
			if reentered(effect) {
				return map[string]int{"g[0]": 1, "g[1]": 2}
			}
			return map[string]int{"g[0]": 1, "g[1]": 1}
		},
	}}
}

// firstOf returns the step whose response was stored first.
func firstOf(facts *oneturntest.Facts, steps ...string) string {
	for _, r := range facts.Journal {
		for _, step := range steps {
			if r.Key == stepKey(step).Public(events.KindToolResponse) {
				return step
			}
		}
	}
	return ""
}

// rowsOfEnds are P13 to P15: all steps have ended.
func rowsOfEnds() []programRow {
	row := func(name, point, how string) programRow {
		return programRow{name: name, fails: point + how, lives: how == dropAck || how == dropReq, data: threeStepsOf, entered: everyStepOnce}
	}
	answered := func(name, point, how string, asked int) programRow {
		w := prompt(name, point+how)
		w.lives = how != kill && how != kill2 && how != "=kill@5"
		w.also = func(t *testing.T, r *rig, facts *oneturntest.Facts) {
			t.Helper()
			require.Equal(t, 1, r.programs.models.calls("planner"), "the planner was asked")
			require.Equal(t, asked, r.programs.models.calls("responder"), "the responder was asked")
			require.Equal(t, "All is done.", contentOf(t, facts))
		}
		return w
	}
	return []programRow{
		row("P13 all steps ended", failpoint.AfterSteps, kill),
		row("P13 before the response", failpoint.AfterTool, kill),
		answered("P13 before the result", failpoint.AfterSteps, kill, 1),
		answered("P13 result stored and not confirmed", failpoint.Result, kill, 1),
		answered("P13 result stored, answer lost", failpoint.Result, dropAck, 1),
		answered("P13 result lost", failpoint.Result, dropReq, 1),
		answered("P14 responder called", failpoint.BeforeResponder, kill, 1),
		answered("P14 responder has replied", failpoint.AfterResponder, kill, 2),
		answered("P14 reply stored and not confirmed", failpoint.StepResponse, "=kill@5", 1), // of the planner, three steps and the responder
		answered("P14 reply stored", failpoint.AfterTool, kill, 1),
		row("P15 response stored and not confirmed", failpoint.Finish, kill),
		row("P15 response stored, answer lost", failpoint.Finish, dropAck),
		row("P15 response lost", failpoint.Finish, dropReq),
		row("P15 response stored", failpoint.AfterFinish, kill),
		row("P15 acknowledged", failpoint.AfterAck, kill),
	}
}

// rowsOfCancels are P19: the turn is cancelled in a step, or after its worker has died there or between two steps.
func rowsOfCancels() []programRow {
	cancel := func(r *rig) {
		_, err := r.client.Cancel(r.t.Context(), &oneturn.Cancel{TurnID: theTurn, Workflow: "Crash"})
		require.NoError(r.t, err)
	}
	row := func(name, fails string, ran ...int) programRow {
		return programRow{
			name: name, fails: fails, every: true, data: threeStepsOf, then: cancel,
			lease:   3 * time.Second, // the cancel is stored before the turn is delivered again
			code:    func(string) events.Code { return events.CodeCancelled },
			entered: func(string) map[string]int { return entries(ran...) },
		}
	}
	cancelled := secondStepEndsAs(events.CodeCancelled)
	inTool := row("P19 worker dies in the tool", "", 1, 1)
	inTool.data = func(effect string) any { return plan(effect, stepInput{}, stepInput{Die: 1}, stepInput{}) }
	inTool.also = cancelled
	live := row("P19 in the tool", "", 1, 1)
	live.data = func(effect string) any { return plan(effect, stepInput{}, stepInput{Until: "never"}, stepInput{}) }
	live.then, live.also = nil, cancelled
	live.script = func(r *rig, first *process) {
		r.until("the tool is entered", func() bool { return r.signalled("entered-1") })
		cancel(r)
		require.False(r.t, r.wait(first, r.drained))
	}
	return []programRow{live, inTool, row("P19 worker dies between two steps", failpoint.AfterStepResponse+kill, 1)}
}

// TestProgramWhoseWorkerDrains is P20: between two steps another worker continues, and a step that does not end in time is judged
// by its effect.
func TestProgramWhoseWorkerDrains(t *testing.T) {
	t.Parallel()
	drains := func(name, step string, r *rig, first *process) {
		r.until("the tool is entered", func() bool { return r.signalled("entered-" + step) })
		require.NoError(r.t, first.cmd.Process.Signal(syscall.SIGTERM))
		r.signal(name)
		require.NoError(r.t, <-first.done)
	}
	for _, effect := range stepEffects() {
		t.Run("between two steps/"+effect, func(t *testing.T) {
			t.Parallel()
			(&programRow{
				data: func(effect string) any {
					return plan(effect, stepInput{Until: "drains", Millis: 200}, stepInput{}, stepInput{})
				},
				script:  func(r *rig, first *process) { drains("drains", "0", r, first) },
				entered: everyStepOnce,
				also: func(t *testing.T, _ *rig, facts *oneturntest.Facts) {
					t.Helper()
					require.Len(t, processesOf(facts), 2, "another worker continues")
				},
			}).run(t, effect)
		})
		t.Run("in a step/"+effect, func(t *testing.T) {
			t.Parallel()
			w := programRow{
				data:   func(effect string) any { return plan(effect, stepInput{}, stepInput{Until: "late"}, stepInput{}) },
				script: func(r *rig, first *process) { drains("other", "1", r, first); r.signal("late") },
				code:   interruptedUnless, softStop: 200 * time.Millisecond,
				entered: func(effect string) map[string]int {
					if reentered(effect) {
						return entries(1, 2, 1)
					}
					return entries(1, 1)
				},
			}
			w.run(t, effect)
		})
	}
}

// processesOf are the workers that have entered tools.
func processesOf(facts *oneturntest.Facts) []int {
	pids := map[int]bool{}
	for _, e := range facts.Ledger {
		pids[e.PID] = true
	}
	return slices.Collect(maps.Keys(pids))
}
