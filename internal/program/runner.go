package program

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// The runner: a loop that starts what [flow.Program.Next] names, waits until a call has ended or waits for people, and asks again.
// It has no state that is not in a record: a runner that continues a program begins with the ends that are
// stored, and decides the same.

// Steps runs and remembers the steps of one program. The host of a program implements it on the journal.
type Steps interface {
	// Begin is called before Run, and before the runner rests: from then on the call counts as one that runs. Stop ends ctx.
	Begin(ctx context.Context, stop context.CancelCauseFunc, call *flow.Call)
	// Run runs a call to its end, which is stored when it returns. Refused is why its arguments cannot be made; then its tool is
	// not entered. An error stops the whole program, which has no end then: it is parked, lost, or handed to another worker. The
	// error of a nested program may be what MayStart has returned; then nothing more is started, and the calls that run may end.
	Run(ctx context.Context, call *flow.Call, args map[string]any, refused error) (End, error)
	// Ended reads which of some calls have ended, from the leader: of a race, the success that was stored first counts. The read
	// shows at least the end with a sequence.
	Ended(calls []*flow.Call, since uint64) (map[string]End, error)
	// Release is called when the runner has got the end of a call.
	Release(call *flow.Call)
	// Rest is called before the runner waits, with the calls that wait for people, and Work when it continues.
	Rest(waiting []*flow.Call)
	Work()
	// Waits reports whether a call waits for people.
	Waits(call *flow.Call) bool
	// MayStart returns why no further call may be started, nil while it may: the turn was cancelled, or the worker is about to stop.
	MayStart(ctx context.Context) error
}

// End is how a call has ended, as its response has it.
type End struct {
	Seq     uint64 // order of the response among all records
	Success bool
	Code    string // "" for a success
	flow.Outcome
}

// startRefusedError is what [Steps].MayStart has returned, as the error of a program. If a nested program ends with it, the calls that run
// at the same time may end, as its own calls did: nothing has stopped them.
type startRefusedError struct{ error }

func (e startRefusedError) Unwrap() error { return e.error }

// errRaceOver stops the calls of a race that another one has won.
var errRaceOver = &events.Error{Code: events.CodeCancelled, Msg: "another call of the group won"}

// IsRaceOver reports whether a call was stopped because another one has won its race.
func IsRaceOver(why *events.Error) bool { return why == errRaceOver }

// Runner runs one program. It is used once.
type Runner struct {
	Program *flow.Program
	Tools   flow.Tools
	Steps   Steps
	Ends    map[string]End // of calls that have ended before; the runner adds to it
	Changed chan struct{}  // with room for one: has a value when a call has begun to wait for people
	// Timing starts goroutines and waits for them; nil are plain ones. A simulation decides which of them continues.
	Timing Timing

	running map[string]*runningCall
	ended   chan endOf
	calls   sync.WaitGroup
}

// Timing is how calls run at the same time.
type Timing interface {
	// Go calls f in a separate goroutine that group waits for.
	Go(group *sync.WaitGroup, f func())
	// Await is called before a wait that ends when ready reports true.
	Await(ready func() bool)
}

type runningCall struct {
	call    *flow.Call
	stop    context.CancelCauseFunc
	stopped bool
}

type endOf struct {
	call *flow.Call
	end  End
	err  error
}

// Run runs the program until it is over, and returns how its calls have ended. If ctx ends, it starts nothing more, and returns when
// the calls that run have ended. The error is why the program has no end yet, or how it was ended: the cause of ctx, or what
// [Steps] returned.
func (r *Runner) Run(ctx context.Context) error {
	if r.Ends == nil {
		r.Ends = map[string]End{}
	}
	r.running, r.ended = map[string]*runningCall{}, make(chan endOf, len(r.Program.Calls()))
	defer r.calls.Wait()
	var why error
	for {
		next := r.Program.Next(r.state(r.waiting(nil)))
		if why == nil && ctx.Err() != nil {
			why = context.Cause(ctx)
		}
		if len(next.Start) > 0 && why == nil {
			if err := r.Steps.MayStart(ctx); err != nil {
				why = startRefusedError{err}
			}
		}
		if why == nil {
			for _, call := range next.Start {
				r.start(ctx, call)
			}
		}
		for _, call := range next.Stop {
			r.stop(call, errRaceOver)
		}
		switch {
		case len(r.running) > 0:
		case why != nil && (len(next.Start) > 0 || next.Wait || next.Halt != nil && isFinal(why)):
			return why
		default:
			return nil
		}
		if err := r.await(r.waiting(why)); err != nil && why == nil {
			why = err
			if _, ends := errors.AsType[startRefusedError](err); !ends {
				r.stopAll(err)
			}
		}
	}
}

// waiting returns the calls that wait for people. A call that was stopped is about to end: the turn must not be parked for its
// questions. Why is why the program was stopped, nil if it was not.
func (r *Runner) waiting(why error) (waiting []*flow.Call) {
	for _, running := range r.running {
		if !running.stopped && !isFinal(why) && r.Steps.Waits(running.call) {
			waiting = append(waiting, running.call)
		}
	}
	return waiting
}

// state is what is known of the calls.
func (r *Runner) state(waiting []*flow.Call) flow.State {
	state := flow.State{}
	for id, end := range r.Ends {
		state[id] = flow.EndedCall(end.Success, end.Code, end.Seq)
	}
	for id, running := range r.running {
		if _, ended := r.Ends[id]; !ended {
			state[id] = flow.CallState{Called: true, Waiting: slices.Contains(waiting, running.call)}
		}
	}
	return state
}

// Result returns the program as it has ended; code and message are why it was ended from outside, "" if its calls decide.
func (r *Runner) Result(code, message string) flow.Ended {
	outcomes := make(map[string]flow.Outcome, len(r.Ends))
	for id := range r.Ends {
		outcomes[id] = r.Ends[id].Outcome
	}
	return flow.Ended{State: r.state(nil), Outcomes: outcomes, Code: code, Message: message}
}

// start starts a call, with arguments that are made of what has ended.
func (r *Runner) start(ctx context.Context, call *flow.Call) {
	state := r.state(nil)
	args, refused := r.Program.Resolve(call, r.Tools, func(id string) (any, bool) {
		end, ok := r.Ends[id]
		return end.Output, ok && r.Program.Visible(id, state)
	})
	ctx, stop := context.WithCancelCause(ctx)
	r.running[call.ID] = &runningCall{call: call, stop: stop}
	r.Steps.Begin(ctx, stop, call)
	run := func() {
		end, err := r.Steps.Run(ctx, call, args, refused)
		r.ended <- endOf{call, end, err}
	}
	if r.Timing == nil {
		r.calls.Go(run)
		return
	}
	r.Timing.Go(&r.calls, run)
}

// stopAll stops all calls. None of them counts as one that waits for people: a turn must not be parked with calls that have no end.
func (r *Runner) stopAll(why error) {
	for _, running := range r.running {
		r.stop(running.call, why)
	}
}

func (r *Runner) stop(call *flow.Call, why error) {
	if running := r.running[call.ID]; running != nil && !running.stopped {
		running.stopped = true
		running.stop(why)
	}
}

// await waits until a call has ended, or has begun to wait for people. It returns the error of a call.
func (r *Runner) await(waiting []*flow.Call) error {
	r.Steps.Rest(waiting)
	if r.Timing != nil {
		r.Timing.Await(func() bool { return len(r.ended)+len(r.Changed) > 0 })
	}
	var got endOf
	select {
	case got = <-r.ended: // first, if there are both
	default:
		select {
		case got = <-r.ended:
		case <-r.Changed:
		}
	}
	r.Steps.Work()
	if got.call == nil {
		return nil
	}
	r.running[got.call.ID].stop(nil)
	delete(r.running, got.call.ID)
	r.Steps.Release(got.call)
	if got.err != nil {
		return got.err
	}
	if err := r.confirm(got); err != nil {
		return err // its end does not count here: the race that it has ended may have another winner
	}
	r.Ends[got.call.ID] = got.end
	return nil
}

// confirm reads which calls of a race have ended, when one of them has succeeded: another one may have succeeded before it, and its
// end has not arrived here yet.
func (r *Runner) confirm(got endOf) error {
	group := r.Program.RaceOf(got.call.ID)
	if group == nil || !got.end.Success {
		return nil
	}
	stored, err := r.Steps.Ended(group, got.end.Seq)
	if err != nil {
		return err
	}
	maps.Copy(r.Ends, stored)
	return nil
}

// isFinal reports whether what stopped the program is how it ends, rather than why it continues elsewhere.
func isFinal(why error) bool {
	_, ok := errors.AsType[*events.Error](why)
	return ok
}
