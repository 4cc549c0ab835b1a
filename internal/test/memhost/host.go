// Package memhost is a [tools.Host] in memory whose people answer by a script. Tests inside the
// repository pass it to any kind of tool; oneturntest.Host wraps it for users without internal
// types. host.go has the script and what a test reads, interactions.go the methods that a tool
// calls, and the rules of a worker for parking and for when a tool may run again. Names, answers
// and steps follow the rules of all hosts (internal/callhost).
package memhost

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/callhost"
	"github.com/oneturn/oneturn/internal/tools"
)

// Host is a [tools.Host] in memory for one turn. The zero value is ready.
//
// It parks at every question without an answer in the script: the call then returns
// [tools.ErrParked], as in a worker that parks the turn. A later call runs the tool from its
// beginning; it gets the answers so far and finds the steps that are done. As in a worker, a name
// stands for one question or surface of a run, and a tool that is called again after it got its
// last answer, as if its worker had died there, ends as interrupted, see [Host.Reenterable].
type Host struct {
	// Reenterable is set for a tool whose effect is none or idempotent instead of replay: it may
	// be called again at any point.
	Reenterable bool
	// Turn is the key of the turn, and the id of its call. Defaults to "turn".
	Turn string
	// Variables are the context variables as value trees; [CallTool] and [Host.Keep] change them.
	Variables map[string]any

	callhost.Steps

	mu       sync.Mutex
	run      int            // how often the tool was called
	now      int            // counts questions and passed answers
	names    callhost.Names // of this run
	parked   map[int]bool   // runs that ended as parked
	script   map[string][]scripted
	asked    []Asked
	shown    []Shown
	progress []tools.Progress
}

type scripted struct {
	value any
	err   error
}

// Asked is a question that a tool has asked, and its outcome.
type Asked struct {
	ID       string // its name, or its number, see [events.AskID]
	Question tools.Question
	Open     bool            // neither answered nor expired
	Answer   json.RawMessage // nil unless answered
	Err      error           // of a question that expired

	askedAt, takenAt int // in the order of Host.now; takenAt 0: not yet
	takenBy          int // the run that got the answer first
}

// Shown is a surface that a tool has shown.
type Shown struct {
	ID        string // "s:" and its name, or "s" and its number, see [events.SurfaceID]
	Surface   tools.Surface
	Dismissed bool
}

// Answer adds an answer to the script, before or after its question is asked. The question is
// the name of one question or its number as text, or the id of a UI tool, whose questions take the
// answers in order. The value becomes JSON, completed by the question's schema as in a worker; a
// value that does not match it, or has no JSON form, makes the tool's Ask fail, and with it the
// test.
func (h *Host) Answer(question string, value any) { h.add(question, scripted{value: value}) }

// Expire ends the time for an answer. The question is as in [Host.Answer].
func (h *Host) Expire(question string) {
	h.add(question, scripted{err: &events.Error{Code: events.CodeExpired, Op: "ask", Msg: "not answered in time"}})
}

func (h *Host) add(question string, s scripted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.script == nil {
		h.script = map[string][]scripted{}
	}
	h.script[question] = append(h.script[question], s)
}

// Asked returns the questions so far, in the order in which they were first asked.
func (h *Host) Asked() []Asked {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// Shown returns the surfaces so far, in the order in which they were first shown.
func (h *Host) Shown() []Shown {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.shown)
}

// Reported returns the progress that all runs have reported.
func (h *Host) Reported() []tools.Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.progress)
}

// Runs returns how often the tool was called.
func (h *Host) Runs() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.run
}

// NewRun starts a run and returns its number: unnamed questions are numbered from 1 again.
// [Host.Call] includes it; a test that makes its call itself starts a run before each.
func (h *Host) NewRun() (run int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names = callhost.Names{}
	h.run++
	return h.run
}

func (h *Host) turn() string { return cmp.Or(h.Turn, "turn") }

// Call starts a run and returns its call: of app "app" and chat "chat", with an epoch that counts
// the runs and h as its host.
func (h *Host) Call(name string) *tools.Call {
	run := h.NewRun()
	h.mu.Lock()
	defer h.mu.Unlock()
	variables := map[string]any{}
	maps.Copy(variables, h.Variables)
	return &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "chat", Turn: h.turn()}, CallID: h.turn(), Name: name,
		Context: variables, IdempotencyKey: "key of the turn", FencingToken: uint64(run), Epoch: run, Attempt: 1, Host: h,
	}
}

// CallTool calls the function of a Go tool as a worker does, with [Host.Call]. A panic becomes an
// error.
func CallTool[In, Out any](ctx context.Context, h *Host, fn func(context.Context, In) (Out, error), in In) (Out, error) {
	var out Out
	invoker := tools.Func(func(ctx context.Context, _ map[string]any) (_ any, err error) {
		out, err = fn(ctx, in)
		return nil, err
	})
	result, err := invoker.Invoke(ctx, h.Call("tool"))
	h.Keep(result)
	return out, err
}

// Keep stores the context variables that a call has changed, for later runs.
func (h *Host) Keep(r tools.Result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Variables == nil {
		h.Variables = map[string]any{}
	}
	maps.Copy(h.Variables, r.Set)
	for _, name := range r.Remove {
		delete(h.Variables, name)
	}
}
