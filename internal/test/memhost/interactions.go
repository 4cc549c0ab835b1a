package memhost

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
func (h *Host) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	if err := ctx.Err(); err != nil {
		return tools.Answer{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id, err := h.name(q.Name, q.Number, &h.asks, events.AskID)
	if err != nil {
		return tools.Answer{}, err
	}
	at := slices.IndexFunc(h.asked, func(a Asked) bool { return a.ID == id })
	if at < 0 {
		at = len(h.asked)
		h.now++
		h.asked = append(h.asked, Asked{ID: id, Question: q, Open: true, askedAt: h.now})
	}
	a := &h.asked[at]
	if !sameQuestion(a.Question, q) {
		return tools.Answer{}, &events.Error{
			Code: events.CodeToolError, Op: "ask " + id,
			Msg: "the order of questions changed: an earlier run asked a different question here; name the questions",
		}
	}
	if a.Open {
		if err := h.decide(a); err != nil {
			return tools.Answer{}, err
		}
	}
	if err := h.take(a); err != nil {
		return tools.Answer{}, err
	}
	return tools.Answer{ID: h.toolCallID(ctx, id), Value: a.Answer, Secret: q.Secret}, a.Err
}

// name returns the id of a question or surface: made of its name or, without one, of its number,
// the caller's or the next one. An id is used once in a run.
func (h *Host) name(name string, number int, last *int, id func(string, int) string) (string, error) {
	if name == "" && number == 0 {
		*last++
		number = *last
	}
	given := id(name, number)
	if h.names[given] {
		return "", &events.Error{Code: events.CodeToolError, Op: "host", Msg: "duplicate name " + given +
			": each question or surface of a call needs a unique name; add a counter to it, or omit it"}
	}
	if h.names == nil {
		h.names = map[string]bool{}
	}
	h.names[given] = true
	return given, nil
}

// toolCallID returns the id of a question or surface on the wire.
func (h *Host) toolCallID(ctx context.Context, id string) string {
	callID := h.turn()
	if call := tools.CallFrom(ctx); call != nil {
		callID = call.CallID
	}
	return events.QuestionID(callID, id)
}

// take passes an answer to the run, by the rule of a worker for effect replay: code after an
// answer that an earlier run got does not run again, unless it is code before an open question.
func (h *Host) take(a *Asked) error {
	if a.takenAt == 0 {
		h.now++
		a.takenAt, a.takenBy = h.now, h.run
	}
	if h.Reenterable || a.takenBy == h.run {
		return nil
	}
	for i := range h.asked {
		o := &h.asked[i]
		if open := o.takenAt == 0 || o.takenBy == h.run; open && (h.parked[a.takenBy] || o.askedAt > a.takenAt) {
			return nil
		}
	}
	return &events.Error{Code: events.CodeInterrupted, Op: "ask " + a.ID, Msg: "an earlier run got this answer: its effects may have happened and are not repeated " +
		"(set Host.Reenterable for a tool whose effect is none or idempotent)"}
}

// decide takes the next entry of the script for a question. Without one the run is parked.
func (h *Host) decide(a *Asked) error {
	key := cmp.Or(a.Question.Name, a.ID)
	if len(h.script[key]) == 0 {
		key = a.Question.Tool
	}
	if key == "" || len(h.script[key]) == 0 {
		if h.parked == nil {
			h.parked = map[int]bool{}
		}
		h.parked[h.run] = true
		return tools.ErrParked
	}
	next := h.script[key][0]
	if next.err == nil {
		value, err := conform(a, next.value)
		if err != nil {
			return err
		}
		a.Answer = value
	}
	h.script[key] = h.script[key][1:]
	a.Open, a.Err = false, next.err
	return nil
}

// conform returns a scripted answer as JSON that matches the schema of its question.
func conform(a *Asked, value any) (json.RawMessage, error) {
	wrong := func(err error) (json.RawMessage, error) {
		return nil, fmt.Errorf("the scripted answer to question %s: %w", a.ID, err)
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
	out, changed, violations := schema.Conform(tree)
	switch {
	case len(violations) > 0:
		return wrong(fmt.Errorf("does not match the schema: %s", violationsText(violations)))
	case changed:
		data, err = events.AppendJSON(nil, out)
	}
	return data, err
}

// violationsText describes what is wrong with an answer.
func violationsText(violations []model.Violation) string {
	texts := make([]string, len(violations))
	for i, v := range violations {
		texts[i] = fmt.Sprintf("%s: expected %s, got %s", cmp.Or(v.Path, "the whole value"), v.Expected, v.GotType)
	}
	return strings.Join(texts, "; ")
}

// sameQuestion compares as a worker does: payloads may differ, because real ones have times and
// random ids.
func sameQuestion(a, b tools.Question) bool {
	return a.Name == b.Name && a.Tool == b.Tool && a.Input == b.Input && a.Component == b.Component &&
		a.Display == b.Display && a.Secret == b.Secret && bytes.Equal(a.Schema, b.Schema)
}

// Show implements [tools.Host].
func (h *Host) Show(ctx context.Context, s tools.Surface) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id, err := h.name(s.Name, s.Number, &h.shows, events.SurfaceID)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(h.shown, func(o Shown) bool { return o.ID == id }) {
		h.shown = append(h.shown, Shown{ID: id, Surface: s})
	}
	return h.toolCallID(ctx, id), nil
}

// Dismiss implements [tools.Host].
func (h *Host) Dismiss(ctx context.Context, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	_, given, _ := events.ParseQuestionID(id)
	if !h.names[given] || h.toolCallID(ctx, given) != id {
		return &events.Error{Code: events.CodeToolError, Op: "dismiss", Msg: fmt.Sprintf(
			"unknown id %.200q: use the id that Show or Ask returned in this run", id)}
	}
	for i := range h.shown {
		if h.shown[i].ID == given {
			h.shown[i].Dismissed = true
		}
	}
	return nil
}

// Progress implements [tools.Host].
func (h *Host) Progress(ctx context.Context, p tools.Progress) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = append(h.progress, p)
	return ctx.Err()
}

// StepResult implements [tools.Host].
func (h *Host) StepResult(ctx context.Context, name string) (json.RawMessage, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	result, done := h.steps[name]
	return result, done, ctx.Err()
}

// StoreStep implements [tools.Host].
func (h *Host) StoreStep(ctx context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if first, done := h.steps[name]; done {
		return first, nil
	}
	if h.steps == nil {
		h.steps = map[string]json.RawMessage{}
	}
	h.steps[name] = bytes.Clone(result)
	return result, nil
}
