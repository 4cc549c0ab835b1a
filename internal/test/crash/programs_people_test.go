//go:build failpoints

package crash_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
)

// askTwoPeople is a group of two steps that ask, and a step after them.
func askTwoPeople(effect string) any {
	return orchestration(effect, "collect", stepInput{Ask: true}, stepInput{Ask: true})
}

// TestParkedProgramWhoseWorkerDies is P16: two steps wait for people and the turn is parked. An answer continues the step that
// asked, and only that one, unless a worker dies on the way: then each step without a response is judged by its effect.
func TestParkedProgramWhoseWorkerDies(t *testing.T) {
	t.Parallel()
	for point, c := range map[string]struct {
		answered      bool // it is reached by an answer
		first, second int  // most entries of the steps: one more if an owner that had not parked has died while the step had none
	}{
		failpoint.BeforePark: {first: 3, second: 3}, failpoint.Park: {first: 2, second: 2}, failpoint.AfterPark: {first: 2, second: 2},
		failpoint.AfterAnswer: {answered: true, first: 2, second: 2}, failpoint.AfterResume: {answered: true, first: 2, second: 3},
	} {
		for _, effect := range []string{"replay", "keyed"} {
			t.Run(point+"/"+effect, func(t *testing.T) {
				t.Parallel()
				one, first := signalled(decision{Yes: true})
				two, second := signalled(decision{Yes: true})
				(&programRow{
					agent: lead, data: askTwoPeople, fails: point + kill,
					people: []oneturntest.Rule{{Ask: "g0", Acts: []oneturntest.Act{one}}, {Ask: "g1", Acts: []oneturntest.Act{two}}},
					script: func(r *rig, worker *process) {
						if c.answered {
							r.until("the turn is parked", func() bool { return r.parked() })
							close(first)
						}
						require.True(r.t, r.wait(worker, func() bool { return false }))
						if !c.answered {
							close(first)
						}
						next := r.start("")
						r.stored("g[0]", events.KindToolResponse)
						close(second)
						r.wait(next, r.atRest())
					},
					also: func(t *testing.T, _ *rig, facts *oneturntest.Facts) {
						t.Helper()
						n := enteredBySteps(facts)
						require.Equal(t, 1, n["last"])
						for step, most := range map[string]int{"g[0]": c.first, "g[1]": c.second} {
							require.GreaterOrEqual(t, n[step], 2, "once before the answer, once with it")
							require.LessOrEqual(t, n[step], most, step)
						}
					},
				}).run(t, effect)
			})
		}
	}
}

// parked reports whether the turn of a row is parked.
func (r *rig) parked() bool {
	s, err := r.js.Stream(r.t.Context(), r.space.TurnsStream())
	require.NoError(r.t, err)
	m, err := s.GetLastMsgForSubject(r.t.Context(), r.space.JournalSubject(stepKey("").Private(events.RecordPark, "1")))
	return err == nil && m.Header.Get(idempotency.HeaderOutcome) == idempotency.ParkParked
}

// TestProgramWhoseStepsWaitInMemoryWhenTheWorkerDies is P17: a step waits for a person in memory while another one kills the worker.
func TestProgramWhoseStepsWaitInMemoryWhenTheWorkerDies(t *testing.T) {
	t.Parallel()
	for _, effect := range stepEffects() {
		t.Run(effect, func(t *testing.T) {
			t.Parallel()
			answer, dead := signalled(decision{Yes: true})
			(&programRow{
				agent: lead, park: parksLate, people: []oneturntest.Rule{{Ask: "g0", Acts: []oneturntest.Act{answer}}},
				data: func(effect string) any {
					return orchestration(effect, "collect", stepInput{Ask: true}, stepInput{Until: "asked", Die: 1})
				},
				script: func(r *rig, first *process) {
					r.until("the question is displayed", func() bool { return len(r.asks.human.Questions()) > 0 })
					r.signal("asked")
					r.dies(first)
					close(dead)
				},
				code: interruptedUnless,
				entered: func(effect string) map[string]int {
					switch {
					case reentered(effect):
						return map[string]int{"g[0]": 2, "g[1]": 2, "last": 1}
					case effect == "replay": // the question is open, so that its step is entered again; the other step asks nothing
						return map[string]int{"g[0]": 2, "g[1]": 1}
					}
					return map[string]int{"g[0]": 1, "g[1]": 1}
				},
			}).run(t, effect)
		})
	}
}

// TestProgramWhoseOwnerIsPausedPastItsLease is P18: the owner stops at a point, another worker ends the turn, and the owner continues.
func TestProgramWhoseOwnerIsPausedPastItsLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		point         string
		unsafe, other int         // entries of the first step
		code          events.Code // of the turn, unless the first step may run again
	}{
		{failpoint.BeforeClaim, 1, 1, ""},
		{failpoint.AfterProgram, 1, 1, ""},
		{failpoint.AfterStepCall, 1, 2, events.CodeInterrupted}, // the owner enters it late: its effect is unknown, as the response states
		{inTool, 1, 2, events.CodeInterrupted},
		{failpoint.AfterStep, 1, 2, events.CodeInterrupted},
		{failpoint.AfterStepResponse, 1, 1, ""},
		{failpoint.AfterTool, 1, 1, ""},
	} {
		for _, effect := range stepEffects() {
			t.Run(c.point+"/"+effect, func(t *testing.T) {
				t.Parallel()
				var zombie *process
				w := &programRow{
					fails: c.point + "=stop@1", data: threeStepsOf,
					code: func(effect string) events.Code {
						if reentered(effect) {
							return ""
						}
						return c.code
					},
					entered: func(effect string) map[string]int {
						switch {
						case reentered(effect):
							return entries(c.other, 1, 1)
						case c.code != "":
							return entries(c.unsafe)
						}
						return entries(1, 1, 1)
					},
				}
				w.script = func(r *rig, first *process) {
					zombie = first
					r.until("the point is reached", func() bool { return len(r.struck(c.point)) > 0 })
					r.standsStill(first)
					r.wait(r.start(""), r.drained)
					r.resume(zombie)
				}
				w.run(t, effect)
			})
		}
	}
}

// TestProgramWhoseMessageIsPurged is P21: a sweep finds the turn, and each step is judged by its effect.
func TestProgramWhoseMessageIsPurged(t *testing.T) {
	t.Parallel()
	for _, effect := range stepEffects() {
		t.Run(effect, func(t *testing.T) {
			t.Parallel()
			(&programRow{
				data:  func(effect string) any { return plan(effect, stepInput{}, stepInput{Die: 1}, stepInput{}) },
				code:  interruptedUnless,
				sweep: 100 * time.Millisecond,
				then: func(r *rig) {
					r.purge()
					next := r.start("")
					r.stored("", events.KindToolResponse)
					r.wait(next, r.drained)
				},
				entered: func(effect string) map[string]int {
					if reentered(effect) {
						return entries(1, 2, 1)
					}
					return entries(1, 1)
				},
			}).run(t, effect)
		})
	}
}

// purge removes all that is left to deliver.
func (r *rig) purge() {
	r.t.Helper()
	for _, name := range []string{r.space.InStream(), r.space.TimersStream()} { // the schedule of the next sweep too
		s, err := r.js.Stream(r.t.Context(), name)
		require.NoError(r.t, err)
		require.NoError(r.t, s.Purge(r.t.Context()))
	}
}

// TestProgramWithADamagedRecord is P22: no tool is entered, open steps are closed, and the turn ends as state_corrupt.
func TestProgramWithADamagedRecord(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{events.KindToolResponse, events.KindToolCall} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			(&programRow{
				damages: stepKey("0").Public(kind),
				data:    func(effect string) any { return plan(effect, stepInput{}, stepInput{Die: 1}, stepInput{}) },
				then: func(r *rig) {
					bucket, err := r.js.KeyValue(r.t.Context(), r.space.TurnsBucket())
					require.NoError(r.t, err)
					_, err = bucket.PutString(r.t.Context(), stepKey("0").Public(kind), "damaged")
					require.NoError(r.t, err)
				},
				code:    func(string) events.Code { return events.CodeStateCorrupt },
				entered: func(string) map[string]int { return entries(1, 1) },
				also:    secondStepEndsAs(events.CodeInterrupted),
			}).run(t, "idempotent")
		})
	}
}

// TestProgramWhoseStoredOutputIsGone is P22 for an output in a blob.
func TestProgramWhoseStoredOutputIsGone(t *testing.T) {
	t.Parallel()
	(&programRow{
		damages: "a blob",
		data:    func(effect string) any { return plan(effect, stepInput{Large: true}, stepInput{Die: 1}, stepInput{}) },
		then: func(r *rig) {
			blobs, err := r.js.ObjectStore(r.t.Context(), r.space.BlobsBucket())
			require.NoError(r.t, err)
			all, err := blobs.List(r.t.Context())
			require.NoError(r.t, err)
			for _, blob := range all {
				require.NoError(r.t, blobs.Delete(r.t.Context(), blob.Name))
			}
		},
		code:    func(string) events.Code { return events.CodeStateCorrupt },
		entered: func(string) map[string]int { return entries(1, 1) },
		also:    secondStepEndsAs(events.CodeInterrupted),
	}).run(t, "idempotent")
}

// TestStepThatKillsEachWorkerEndsAsInterrupted is P23: ten takeovers without a response of a step are the limit.
func TestStepThatKillsEachWorkerEndsAsInterrupted(t *testing.T) {
	t.Parallel()
	const takeovers = 10
	(&programRow{
		data: func(effect string) any { return plan(effect, stepInput{}, stepInput{Die: takeovers + 1}, stepInput{}) },
		script: func(r *rig, first *process) {
			r.dies(first)
			for range takeovers {
				r.dies(r.start(""))
			}
		},
		code:    func(string) events.Code { return events.CodeInterrupted },
		entered: func(string) map[string]int { return entries(1, takeovers+1) },
		also:    secondStepEndsAs(events.CodeInterrupted),
	}).run(t, "idempotent")
}
