package program_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSteps are steps that a test ends: each waits until the test ends it, or until it is stopped.
type fakeSteps struct {
	mu       sync.Mutex
	seq      uint64
	begun    []string
	released []string
	rests    [][]string
	args     map[string]map[string]any
	ends     map[string]chan endOrError
	waits    map[string]bool
	stored   map[string]program.End // more than the ends that have arrived
	confirm  error
	refuse   error
}

type endOrError struct {
	end program.End
	err error
}

func (f *fakeSteps) Begin(_ context.Context, _ context.CancelCauseFunc, call *flow.Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = append(f.begun, call.ID)
}

func (f *fakeSteps) Run(ctx context.Context, call *flow.Call, args map[string]any, refused error) (program.End, error) {
	f.mu.Lock()
	f.args[call.ID] = args
	ends := f.ends[call.ID]
	f.mu.Unlock()
	if refused != nil {
		return f.failed("bad_args"), nil //nolint:nilerr // the step has ended
	}
	select {
	case how := <-ends:
		return how.end, how.err
	case <-ctx.Done():
		if coded, ok := errors.AsType[*events.Error](context.Cause(ctx)); ok {
			return f.failed(string(coded.Code)), nil
		}
		return program.End{}, context.Cause(ctx)
	}
}

func (f *fakeSteps) Ended([]*flow.Call, uint64) (map[string]program.End, error) {
	return f.stored, f.confirm
}

func (f *fakeSteps) Release(call *flow.Call) { f.released = append(f.released, call.ID) }

func (f *fakeSteps) Rest(waiting []*flow.Call) {
	ids := []string{}
	for _, call := range waiting {
		ids = append(ids, call.ID)
	}
	slices.Sort(ids)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rests = append(f.rests, ids)
}

func (f *fakeSteps) Work() {}

func (f *fakeSteps) Waits(call *flow.Call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waits[call.ID]
}

func (f *fakeSteps) MayStart(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refuse
}

func (f *fakeSteps) next() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	return f.seq
}

func (f *fakeSteps) failed(code string) program.End {
	return program.End{Seq: f.next(), Code: code, Outcome: flow.Outcome{Message: code}}
}

// running is a runner in a test: of a program, with steps that the test ends.
type running struct {
	t     *testing.T
	steps *fakeSteps
	*program.Runner

	stop context.CancelCauseFunc
	err  error
	over bool
}

// runs runs a test in which time stands still until every goroutine waits.
func runs(t *testing.T, p *flow.Program, test func(r *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		steps := &fakeSteps{args: map[string]map[string]any{}, ends: map[string]chan endOrError{}, waits: map[string]bool{}}
		for _, call := range p.Calls() {
			steps.ends[call.ID] = make(chan endOrError, 1)
		}
		r := &running{t: t, steps: steps, Runner: &program.Runner{Program: p, Tools: flow.ToolList{{Name: "tool"}}, Steps: steps, Changed: make(chan struct{}, 1)}}
		var ctx context.Context
		ctx, r.stop = context.WithCancelCause(t.Context())
		defer r.stop(nil)
		go func() {
			r.err = r.Run(ctx)
			r.over = true
		}()
		test(r)
		synctest.Wait()
		require.True(t, r.over, "the runner still runs")
		require.ElementsMatch(t, steps.begun, steps.released)
	})
}

// begun returns the calls that have begun, in order, when nothing more begins.
func (r *running) begun() []string {
	synctest.Wait()
	r.steps.mu.Lock()
	defer r.steps.mu.Unlock()
	return slices.Clone(r.steps.begun)
}

func (r *running) succeeds(id string, output any) {
	r.steps.ends[id] <- endOrError{end: program.End{Seq: r.steps.next(), Success: true, Outcome: flow.Outcome{Output: output}}}
	synctest.Wait()
}

func (r *running) fails(id string) {
	r.steps.ends[id] <- endOrError{end: r.steps.failed("tool_error")}
	synctest.Wait()
}

func (r *running) errs(id string, err error) {
	r.steps.ends[id] <- endOrError{err: err}
	synctest.Wait()
}

// row is a program of steps of one call each.
func row(kind flow.Kind, ids ...string) *flow.Program {
	p := &flow.Program{Kind: kind}
	for _, id := range ids {
		p.Steps = append(p.Steps, flow.Step{ID: id, Key: id, Calls: []flow.Call{{ID: id, Key: id, Tool: "tool"}}})
	}
	return p
}

// fan is a program of a group, and a step after it.
func fan(merge flow.Merge, parallel int, children ...string) *flow.Program {
	p := row(flow.KindOrchestration, "after")
	group := flow.Step{ID: "g", Key: "g", Group: true, Merge: merge, Parallel: parallel}
	for _, id := range children {
		group.Calls = append(group.Calls, flow.Call{ID: id, Key: id, Tool: "tool"})
	}
	p.Steps = append([]flow.Step{group}, p.Steps...)
	return p
}

var errLost = errors.New("lost")

func TestStepsRunOneAfterTheOtherWithTheOutputsOfTheEarlierOnes(t *testing.T) {
	t.Parallel()
	p := row(flow.KindOrchestration, "a", "b")
	p.Steps[1].Calls[0].Arguments = map[string]any{"from": "{{ result.a.city }}"}
	runs(t, p, func(r *running) {
		require.Equal(t, []string{"a"}, r.begun())
		r.succeeds("a", map[string]any{"city": "Rome"})
		require.Equal(t, []string{"a", "b"}, r.begun())
		require.Equal(t, map[string]any{"from": "Rome"}, r.steps.args["b"])
		r.succeeds("b", nil)
		require.NoError(t, r.err)
		require.Equal(t, flow.StatusSuccess, p.Status(r.Result("", "")))
	})
}

func TestRunnerContinuesAfterTheEndsThatAreStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		steps := &fakeSteps{args: map[string]map[string]any{}, ends: map[string]chan endOrError{"b": make(chan endOrError, 1)}}
		steps.ends["b"] <- endOrError{end: program.End{Seq: 2, Success: true}}
		r := &program.Runner{
			Program: row(flow.KindPlan, "a", "b"), Tools: flow.ToolList{}, Steps: steps, Ends: map[string]program.End{"a": {Seq: 1, Success: true}},
		}
		require.NoError(t, r.Run(t.Context()))
		require.Equal(t, []string{"b"}, steps.begun)
	})
}

func TestFailedStepHaltsTheProgramUnlessItsFailureIsTolerated(t *testing.T) {
	t.Parallel()
	p := row(flow.KindOrchestration, "a", "b")
	runs(t, p, func(r *running) {
		r.fails("a")
		require.NoError(t, r.err)
		require.Equal(t, []string{"a"}, r.begun())
		require.Equal(t, flow.StatusFailed, p.Status(r.Result("", "")))
	})
	tolerant := row(flow.KindOrchestration, "a", "b")
	tolerant.Steps[0].Continue = true
	runs(t, tolerant, func(r *running) {
		r.fails("a")
		r.succeeds("b", nil)
		require.NoError(t, r.err)
		require.Equal(t, flow.StatusPartial, tolerant.Status(r.Result("", "")))
	})
}

func TestCollectWaitsForAllCallsAndThenHalts(t *testing.T) {
	t.Parallel()
	runs(t, fan(flow.MergeCollect, 2, "x", "y", "z"), func(r *running) {
		require.Equal(t, []string{"x", "y"}, r.begun(), "two at the same time")
		r.fails("x")
		require.Equal(t, []string{"x", "y", "z"}, r.begun(), "a failure does not stop the others")
		r.succeeds("z", nil)
		require.False(t, r.over)
		r.succeeds("y", nil)
		require.NoError(t, r.err)
		require.Len(t, r.Ends, 3)
	})
}

// A turn must not be parked for the questions of a call that is about to end.
func TestCallThatWaitedForPeopleDoesNotWaitOnceItIsStopped(t *testing.T) {
	t.Parallel()
	runs(t, fan(flow.MergeFirstSuccess, 2, "x", "y"), func(r *running) {
		require.Equal(t, []string{"x", "y"}, r.begun())
		r.steps.mu.Lock()
		r.steps.waits["x"] = true
		r.steps.mu.Unlock()
		r.Changed <- struct{}{}
		require.Equal(t, []string{"x", "y"}, r.begun())
		r.succeeds("y", nil)
		require.Equal(t, []string{"x", "y", "after"}, r.begun())
		require.Equal(t, [][]string{{}, {"x"}, {}, {}}, r.steps.rests)
		r.succeeds("after", nil)
		require.NoError(t, r.err)
	})
}

func TestCallThatWaitsForPeopleLeavesItsPlaceInTheGroup(t *testing.T) {
	t.Parallel()
	runs(t, fan(flow.MergeCollect, 1, "x", "y"), func(r *running) {
		require.Equal(t, []string{"x"}, r.begun())
		r.steps.mu.Lock()
		r.steps.waits["x"] = true
		r.steps.mu.Unlock()
		r.Changed <- struct{}{}
		require.Equal(t, []string{"x", "y"}, r.begun())
		require.Equal(t, []string{"x"}, r.steps.rests[len(r.steps.rests)-1])
		r.succeeds("y", nil)
		r.succeeds("x", nil)
		require.Equal(t, []string{"x", "y", "after"}, r.begun())
		r.succeeds("after", nil)
		require.NoError(t, r.err)
	})
}

func TestFirstSuccessThatIsStoredWinsThoughAnotherOneArrivesFirst(t *testing.T) {
	t.Parallel()
	p := fan(flow.MergeFirstSuccess, 2, "x", "y", "z")
	p.Steps[1].Calls[0].Arguments = map[string]any{"winner": "{{ result.g }}"}
	runs(t, p, func(r *running) {
		require.Equal(t, []string{"x", "y"}, r.begun())
		first := program.End{Seq: r.steps.next(), Success: true, Outcome: flow.Outcome{Output: "y"}}
		r.steps.stored = map[string]program.End{"y": first} // it has not arrived
		r.succeeds("x", "x")
		require.Equal(t, []string{"x", "y", "after"}, r.begun(), "the race is over by its records")
		require.Equal(t, map[string]any{"winner": "y"}, r.steps.args["after"])
		r.steps.ends["y"] <- endOrError{end: first}
		r.succeeds("after", nil)
		require.NoError(t, r.err)
	})
}

func TestRaceStopsTheOthersWhenOneHasWon(t *testing.T) {
	t.Parallel()
	runs(t, fan(flow.MergeFirstSuccess, 2, "x", "y", "z"), func(r *running) {
		r.succeeds("x", "x")
		require.Equal(t, []string{"x", "y", "after"}, r.begun())
		require.Equal(t, "cancelled", r.Ends["y"].Code)
		r.succeeds("after", nil)
		require.NoError(t, r.err)
	})
}

func TestRaceWhoseWinnerIsNotConfirmedHasNone(t *testing.T) {
	t.Parallel()
	p := fan(flow.MergeFirstSuccess, 1, "x")
	p.Steps = p.Steps[:1]
	runs(t, p, func(r *running) {
		r.steps.confirm = errLost
		r.succeeds("x", "x")
		require.ErrorIs(t, r.err, errLost)
		require.Empty(t, r.Ends)
	})
}

func TestErrorOfAStepStopsTheProgramWithoutAnEnd(t *testing.T) {
	t.Parallel()
	runs(t, fan(flow.MergeCollect, 3, "x", "y"), func(r *running) {
		r.errs("x", errLost)
		require.ErrorIs(t, r.err, errLost)
		require.Equal(t, []string{"x", "y"}, r.begun())
		require.Empty(t, slices.Collect(maps.Keys(r.Ends)))
	})
}

func TestRefusedStartEndsTheProgramWhenItsCallsHaveEnded(t *testing.T) {
	t.Parallel()
	runs(t, row(flow.KindPlan, "a", "b"), func(r *running) {
		synctest.Wait()
		r.steps.mu.Lock()
		r.steps.refuse = errLost
		r.steps.mu.Unlock()
		r.succeeds("a", nil)
		require.ErrorIs(t, r.err, errLost)
		require.Contains(t, r.Ends, "a")
	})
}

func TestProgramWhoseContextEndsStartsNothingMoreAndKeepsWhatHasEnded(t *testing.T) {
	t.Parallel()
	cancelled := &events.Error{Code: events.CodeCancelled}
	p := row(flow.KindPlan, "a", "b", "c")
	runs(t, p, func(r *running) {
		synctest.Wait()
		r.succeeds("a", nil)
		r.stop(cancelled)
		require.Equal(t, []string{"a", "b"}, r.begun())
		require.ErrorIs(t, r.err, cancelled)
		require.True(t, r.Ends["a"].Success)
		require.Equal(t, "cancelled", r.Ends["b"].Code)
	})
}

func TestProgramThatIsOverIsNotCancelledByALateEndOfItsContext(t *testing.T) {
	t.Parallel()
	runs(t, row(flow.KindPlan, "a"), func(r *running) {
		synctest.Wait()
		end := program.End{Seq: 1, Success: true}
		r.steps.mu.Lock()
		r.steps.ends["a"] <- endOrError{end: end}
		r.steps.mu.Unlock()
		synctest.Wait()
		r.stop(errLost)
		require.NoError(t, r.err)
	})
}

func TestArgumentsThatCannotBeMadeEndTheStepWithoutItsTool(t *testing.T) {
	t.Parallel()
	p := row(flow.KindOrchestration, "a", "b")
	p.Steps[1].Calls[0].Arguments = map[string]any{"text": "to {{ result.a.city }}!"}
	runs(t, p, func(r *running) {
		r.succeeds("a", map[string]any{})
		require.NoError(t, r.err)
		require.Equal(t, "bad_args", r.Ends["b"].Code)
	})
}
