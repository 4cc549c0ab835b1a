package memhost

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/answers"
	"github.com/oneturn/oneturn/internal/tools"
)

// Ask implements [tools.Host].
func (h *Host) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	if err := ctx.Err(); err != nil {
		return tools.Answer{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id, err := h.names.Question(q.Name, q.Number, q.Tool, nil)
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

// toolCallID returns the id of a question or surface on the wire.
func (h *Host) toolCallID(ctx context.Context, id string) string {
	return events.QuestionID(h.callID(ctx), id)
}

func (h *Host) callID(ctx context.Context) string {
	if call := tools.CallFrom(ctx); call != nil {
		return call.CallID
	}
	return h.turn()
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
	check, err := answers.For(&a.Question)
	if err != nil {
		return wrong(err)
	}
	if data, err = check(data); err != nil {
		return wrong(err)
	}
	return data, nil
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
	id, err := h.names.Surface(s.Name, s.Number, s.Tool, nil)
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
	given, _, err := h.names.Displayed(h.callID(ctx), id)
	if err != nil {
		return err
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
