package oneturntest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Ask implements [tools.Host].
func (d *Desk) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	if err := ctx.Err(); err != nil {
		return tools.Answer{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.name(q.Name, q.Number, &d.asks, events.AskID)
	if err != nil {
		return tools.Answer{}, err
	}
	at := slices.IndexFunc(d.asked, func(a Asked) bool { return a.ID == id })
	if at < 0 {
		at = len(d.asked)
		d.now++
		d.asked = append(d.asked, Asked{ID: id, Question: q, Open: true, asked: d.now})
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
	if err := d.take(a); err != nil {
		return tools.Answer{}, err
	}
	return tools.Answer{ID: toolCallID(ctx, id), Value: a.Answer, Secret: q.Secret}, a.Err
}

// name gives what the run puts up its id: of its name or, where there is none, of its number, the
// caller's or the next one.
func (d *Desk) name(name string, number int, last *int, id func(string, int) string) (string, error) {
	if name == "" && number == 0 {
		*last++
		number = *last
	}
	given := id(name, number)
	if d.names[given] {
		return "", &events.Error{Code: events.CodeToolError, Op: "desk", Msg: "this run has put up " + given +
			" before: a name stands for one question or surface of the call; count in it what repeats, or leave it out"}
	}
	if d.names == nil {
		d.names = map[string]bool{}
	}
	d.names[given] = true
	return given, nil
}

// toolCallID is the id that a frontend knows a question or surface by.
func toolCallID(ctx context.Context, id string) string {
	callID := theTurn
	if call := tools.CallFrom(ctx); call != nil {
		callID = call.CallID
	}
	return events.QuestionID(callID, id)
}

// take has the run handed an answer, by the rule of a worker for effect replay: what may have
// happened behind an answer that another run was handed does not happen again. It is not what
// counts while that is code before an open question.
func (d *Desk) take(a *Asked) error {
	if a.taken == 0 {
		d.now++
		a.taken, a.by = d.now, d.run
	}
	if d.Reenterable || a.by == d.run {
		return nil
	}
	for i := range d.asked {
		o := &d.asked[i]
		if open := o.taken == 0 || o.by == d.run; open && (d.parked[a.by] || o.asked > a.taken) {
			return nil
		}
	}
	return &events.Error{Code: events.CodeInterrupted, Op: "ask " + a.ID, Msg: "a run before was handed this answer: what it did with it may have happened, " +
		"and is not done again (set Desk.Reenterable for a tool whose effect is none or idempotent)"}
}

// decide takes what the script has for a question. Without that the run is parked.
func (d *Desk) decide(a *Asked) error {
	key := cmp.Or(a.Question.Name, a.ID)
	if len(d.script[key]) == 0 {
		key = a.Question.Tool
	}
	if key == "" || len(d.script[key]) == 0 {
		if d.parked == nil {
			d.parked = map[int]bool{}
		}
		d.parked[d.run] = true
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
		return nil, fmt.Errorf("oneturntest.Desk: the scripted answer to question %s: %w", a.ID, err)
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
func worded(faults []model.Violation) string {
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

// Show implements [tools.Host].
func (d *Desk) Show(ctx context.Context, s tools.Surface) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.name(s.Name, s.Number, &d.shows, events.SurfaceID)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(d.shown, func(o Shown) bool { return o.ID == id }) {
		d.shown = append(d.shown, Shown{ID: id, Surface: s})
	}
	return toolCallID(ctx, id), nil
}

// Dismiss implements [tools.Host].
func (d *Desk) Dismiss(ctx context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	_, given, _ := events.ParseQuestionID(id)
	if !d.names[given] || toolCallID(ctx, given) != id {
		return &events.Error{Code: events.CodeToolError, Op: "dismiss", Msg: fmt.Sprintf(
			"this run has put up nothing with id %.200q: use the id that Show or Ask returned", id)}
	}
	for i := range d.shown {
		if d.shown[i].ID == given {
			d.shown[i].Dismissed = true
		}
	}
	return nil
}

// Progress implements [tools.Host].
func (d *Desk) Progress(ctx context.Context, p tools.Progress) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress = append(d.progress, p)
	return ctx.Err()
}

// StepResult implements [tools.Host].
func (d *Desk) StepResult(ctx context.Context, name string) (json.RawMessage, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	result, done := d.steps[name]
	return result, done, ctx.Err()
}

// StoreStep implements [tools.Host].
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
