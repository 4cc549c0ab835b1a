package turntest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tools"
)

// Desk is a [tools.Desk] in memory whose people answer by a script: it tests a tool that asks,
// without a server and without waiting. The zero value is ready.
//
// It parks at every question that has no answer in the script: [CallTool] then returns
// [tools.ErrParked], as a run does whose worker has parked the turn. Answer the question and call
// the tool again: it runs from its beginning, is handed what was answered and finds the steps
// that are done, as in a worker. A Desk is the memory of one turn; take a new one for the next.
type Desk struct {
	mu       sync.Mutex
	run      int // how often the tool was called
	asks     int // questions without a name in this run
	shows    int // surfaces without a name in this run
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
	ID       string // its name, or its number
	Question tools.Question
	Open     bool            // neither answered nor expired
	Answer   json.RawMessage // nil unless answered
	Err      error           // of a question that expired
}

// Shown is a surface that a tool has shown.
type Shown struct {
	ID        string // its name, or "s" and its number
	Surface   tools.Surface
	Dismissed bool
}

// Answer puts an answer into the script, before or after it is asked for. Question is the id
// of a question (its name, or its number as text) or the id of a UI tool, whose questions take
// the answers in order. The value becomes JSON, completed by the question's schema as a worker
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
// it; a test that calls a [tools.Tool] itself does it before each call.
func (d *Desk) NewRun() (run int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asks, d.shows = 0, 0
	d.run++
	return d.run
}

// Ask implements [tools.Desk].
func (d *Desk) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	if err := ctx.Err(); err != nil {
		return tools.Answer{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := named("", q.Name, q.Number, &d.asks)
	at := slices.IndexFunc(d.asked, func(a Asked) bool { return a.ID == id })
	if at < 0 {
		at = len(d.asked)
		d.asked = append(d.asked, Asked{ID: id, Question: q, Open: true})
	}
	a := &d.asked[at]
	if !sameQuestion(a.Question, q) {
		return tools.Answer{}, &events.Error{
			Code: events.CodeToolError, Op: "ask " + id,
			Msg: "the order of questions changed: a run before asked something else here; name the questions",
		}
	}
	if a.Open {
		if err := d.decide(a); err != nil {
			return tools.Answer{}, err
		}
	}
	return tools.Answer{ID: id, Value: a.Answer, Secret: q.Secret}, a.Err
}

// named returns the name or, where there is none, the number: the caller's, or the next one.
func named(before, name string, number int, last *int) string {
	if name != "" {
		return name
	}
	if number == 0 {
		*last++
		number = *last
	}
	return before + strconv.Itoa(number)
}

// decide takes what the script has for a question.
func (d *Desk) decide(a *Asked) error {
	key := a.ID
	if len(d.script[key]) == 0 {
		key = a.Question.Tool
	}
	if key == "" || len(d.script[key]) == 0 {
		return tools.ErrParked
	}
	next := d.script[key][0]
	if next.err == nil {
		value, err := fitting(a, next.value)
		if err != nil {
			return err
		}
		a.Answer = value
	}
	d.script[key] = d.script[key][1:]
	a.Open, a.Err = false, next.err
	return nil
}

// fitting returns a scripted answer as JSON.
func fitting(a *Asked, value any) (json.RawMessage, error) {
	wrong := func(err error) (json.RawMessage, error) {
		return nil, fmt.Errorf("turntest.Desk: the scripted answer to question %s: %w", a.ID, err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return wrong(err)
	}
	if a.Question.Schema == nil {
		return data, nil
	}
	schema, err := model.CompileValue("answer", a.Question.Schema)
	if err != nil {
		return wrong(fmt.Errorf("the schema of the question: %w", err))
	}
	tree, err := events.Decode(data)
	if err != nil {
		return wrong(err)
	}
	out, changed, faults := schema.Conform(tree)
	switch {
	case len(faults) > 0:
		return wrong(fmt.Errorf("does not fit the schema: %s", worded(faults)))
	case changed:
		data, err = events.AppendJSON(nil, out)
	}
	return data, err
}

// worded says what is wrong with an answer.
func worded(faults []model.Fault) string {
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = fmt.Sprintf("%s: expected %s, got %s", cmp.Or(f.Path, "the whole value"), f.Expected, f.GotType)
	}
	return strings.Join(texts, "; ")
}

// sameQuestion compares as a worker does: the payload may differ, for real ones hold times and
// random ids.
func sameQuestion(a, b tools.Question) bool {
	return a.Name == b.Name && a.Tool == b.Tool && a.Input == b.Input && a.Component == b.Component &&
		a.Display == b.Display && a.Secret == b.Secret && bytes.Equal(a.Schema, b.Schema)
}

// Show implements [tools.Desk].
func (d *Desk) Show(ctx context.Context, s tools.Surface) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := named("s", s.Name, s.Number, &d.shows)
	if !slices.ContainsFunc(d.shown, func(o Shown) bool { return o.ID == id }) {
		d.shown = append(d.shown, Shown{ID: id, Surface: s})
	}
	return id, nil
}

// Dismiss implements [tools.Desk].
func (d *Desk) Dismiss(ctx context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.shown {
		if d.shown[i].ID == id {
			d.shown[i].Dismissed = true
		}
	}
	return ctx.Err()
}

// Progress implements [tools.Desk].
func (d *Desk) Progress(ctx context.Context, p tools.Progress) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress = append(d.progress, p)
	return ctx.Err()
}

// StepResult implements [tools.Desk].
func (d *Desk) StepResult(ctx context.Context, name string) (json.RawMessage, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	result, done := d.steps[name]
	return result, done, ctx.Err()
}

// StoreStep implements [tools.Desk].
func (d *Desk) StoreStep(ctx context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if first, done := d.steps[name]; done {
		return first, nil
	}
	if d.steps == nil {
		d.steps = map[string]json.RawMessage{}
	}
	d.steps[name] = bytes.Clone(result)
	return result, nil
}

// CallTool calls the function of a Go tool as a worker would, with desk as its [tools.Desk].
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
		Turn: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, CallID: "turn", Name: "tool",
		Context: map[string]any{}, IdempotencyKey: "key of the turn", FencingToken: uint64(run), Epoch: run, Attempt: 1, Desk: desk,
	})
	return out, err
}
