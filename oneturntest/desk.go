package oneturntest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Desk is a [tools.Host] in memory whose people answer by a script: it tests a tool that asks,
// without a server and without waiting. The zero value is ready.
//
// It parks at every question that has no answer in the script: [CallTool] then returns
// [tools.ErrParked], as a run does whose worker has parked the turn. Answer the question and call
// the tool again: it runs from its beginning, is handed what was answered and finds the steps
// that are done, as in a worker. A Desk is the memory of one turn; take a new one for the next.
//
// As in a worker, a name stands for one question or surface of a run. And a tool that is called
// again after it was handed its last answer, as if its worker had died there, is told that the
// turn is interrupted: the code behind the answer is not run twice, see [Desk.Reenterable].
type Desk struct {
	// Reenterable says that the tool's effect is none or idempotent, not replay: the tool may be
	// called again wherever it was.
	Reenterable bool

	mu       sync.Mutex
	run      int             // how often the tool was called
	now      int             // counts questions and answers handed out
	asks     int             // questions without a name in this run
	shows    int             // surfaces without a name in this run
	names    map[string]bool // what this run has put up
	parked   map[int]bool    // runs that have ended so
	script   map[string][]scripted
	asked    []Asked
	shown    []Shown
	progress []tools.Progress
	steps    map[string]json.RawMessage
}

type scripted struct {
	value any
	err   error
}

// Asked is a question that a tool has asked, and what became of it.
type Asked struct {
	ID       string // its name, or its number, see [events.AskID]
	Question tools.Question
	Open     bool            // neither answered nor expired
	Answer   json.RawMessage // nil unless answered
	Err      error           // of a question that expired

	asked, taken int // when, taken 0 for not yet
	by           int // the run that was handed the answer first
}

// Shown is a surface that a tool has shown.
type Shown struct {
	ID        string // "s:" and its name, or "s" and its number, see [events.SurfaceID]
	Surface   tools.Surface
	Dismissed bool
}

// Answer puts an answer into the script, before or after it is asked for. Question is that of
// one question, its name or its number as text, or the id of a UI tool, whose questions take the
// answers in order. The value becomes JSON, completed by the question's schema as a worker
// does it; one that does not fit, or has no JSON form, makes the tool's Ask fail, so that the
// test does.
func (d *Desk) Answer(question string, value any) { d.add(question, scripted{value: value}) }

// Expire lets the time for an answer pass. Question is that of [Desk.Answer].
func (d *Desk) Expire(question string) {
	d.add(question, scripted{err: &events.Error{Code: events.CodeExpired, Op: "ask", Msg: "nobody answered in time"}})
}

func (d *Desk) add(question string, s scripted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.script == nil {
		d.script = map[string][]scripted{}
	}
	d.script[question] = append(d.script[question], s)
}

// Asked returns the questions so far, in the order in which they were first asked.
func (d *Desk) Asked() []Asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked)
}

// Shown returns the surfaces so far, in the order in which they were first shown.
func (d *Desk) Shown() []Shown {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.shown)
}

// Reported returns what was said of the progress, in every run.
func (d *Desk) Reported() []tools.Progress {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.progress)
}

// Runs returns how often the tool was called.
func (d *Desk) Runs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.run
}

// NewRun starts a run and returns its number: what has no name is numbered anew. [CallTool] does
// it; a test that calls a [tools.Invoker] itself does it before each call.
func (d *Desk) NewRun() (run int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asks, d.shows, d.names = 0, 0, map[string]bool{}
	d.run++
	return d.run
}

// theTurn is the key of the turn that [CallTool] calls for.
const theTurn = "turn"

// CallTool calls the function of a Go tool as a worker would, with desk as its [tools.Host].
// [tools.CallFrom] inside it gives a call of app "app", chat "chat" and turn "turn", whose epoch
// counts the runs. A panic becomes an error.
func CallTool[In, Out any](ctx context.Context, desk *Desk, fn func(context.Context, In) (Out, error), in In) (Out, error) {
	var out Out
	tool := tools.Func(func(ctx context.Context, _ map[string]any) (_ any, err error) {
		out, err = fn(ctx, in)
		return nil, err
	})
	run := desk.NewRun()
	_, err := tool.Invoke(ctx, &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "chat", Turn: theTurn}, CallID: theTurn, Name: "tool",
		Context: map[string]any{}, IdempotencyKey: "key of the turn", FencingToken: uint64(run), Epoch: run, Attempt: 1, Host: desk,
	})
	return out, err
}
