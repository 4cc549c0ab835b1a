package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// eraseTime bounds the erasing of a turn's secrets behind its response.
const eraseTime = 5 * time.Second

// sealAnswer returns the answer to a secret question as the journal may hold it.
func (h *Handlers) sealAnswer(key subjects.Key, id string, data []byte) ([]byte, error) {
	return h.SecretKeys.Seal(idempotency.AnswerName(key, id), data)
}

// openAnswer returns the data that sealAnswer was given, and an answer that is not sealed as it is.
func (h *Handlers) openAnswer(key subjects.Key, id string, data []byte) ([]byte, error) {
	if !secrets.Sealed(data) {
		return data, nil
	}
	return h.SecretKeys.Open(idempotency.AnswerName(key, id), data)
}

// guardedDesk is the desk of a call, as its tool is given it: what goes out through it holds no
// secret that the call was handed.
type guardedDesk struct {
	tools.Host

	h     *Handlers
	t     *turn
	scrub *secrets.Scrubber
}

// secret reports whether the answer to a question is one: the tool says so, or the manifests, the
// component that shows the question, its payload or the schema of the answer.
func (d *guardedDesk) secret(q *tools.Question) bool {
	if b := d.t.binding; q.Secret || b != nil && b.Secret {
		return true
	}
	bound := ""
	if d.h.Bindings != nil {
		manifests := d.h.Bindings()
		if manifests.AsksSecrets(d.t.Workflow, q.Tool) {
			return true
		}
		bound, _ = manifests.Look(d.t.Workflow, q.Tool)
	}
	return secrets.AsksAs(cmp.Or(q.Component, bound, q.Tool), q.Payload, q.Schema)
}

// Ask implements [tools.Host].
func (d *guardedDesk) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	if q.Secret = d.secret(&q); q.Secret {
		if err := d.h.SecretKeys.Ready(); err != nil {
			return tools.Answer{}, err
		}
		d.t.secret.Store(true)
	}
	if s := d.scrub; s.Active() {
		q.Name, q.Tool, q.Component, q.Display = s.Text(q.Name), s.Text(q.Tool), s.Text(q.Component), s.Text(q.Display)
		q.Payload, q.Schema = s.JSON(q.Payload), s.JSON(q.Schema)
	}
	a, err := d.Host.Ask(ctx, q)
	if a.Secret || q.Secret && err == nil {
		a.Secret = true
		d.scrub.Learn(a.Value, q.Payload)
	}
	return a, err
}

// Show implements [tools.Host].
func (d *guardedDesk) Show(ctx context.Context, s tools.Surface) (string, error) {
	if c := d.scrub; c.Active() {
		s.Name, s.Tool, s.Component, s.Display = c.Text(s.Name), c.Text(s.Tool), c.Text(s.Component), c.Text(s.Display)
		s.Payload = c.JSON(s.Payload)
	}
	return d.Host.Show(ctx, s)
}

// Progress implements [tools.Host].
func (d *guardedDesk) Progress(ctx context.Context, p tools.Progress) error {
	p.Message, p.Tool, p.Corr = d.scrub.Text(p.Message), d.scrub.Text(p.Tool), d.scrub.Text(p.Corr)
	return d.Host.Progress(ctx, p)
}

// StepResult implements [tools.Host].
func (d *guardedDesk) StepResult(ctx context.Context, name string) (json.RawMessage, bool, error) {
	result, done, err := d.Host.StepResult(ctx, d.scrub.Text(name))
	if err != nil || !done {
		return nil, false, err
	}
	result, err = d.open(name, result)
	return result, err == nil, err
}

// StoreStep implements [tools.Host]. A tool gets back what it has stored, so that the result of
// a step behind a secret answer is sealed, not blotted out.
func (d *guardedDesk) StoreStep(ctx context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	plain := d.scrub.Text(name)
	if d.scrub.Active() {
		sealed, err := d.h.SecretKeys.Seal(idempotency.StepName(d.t.key, plain), result)
		if err != nil {
			return nil, err
		}
		d.t.secret.Store(true)
		result = sealed
	}
	stored, err := d.Host.StoreStep(ctx, plain, result)
	if err != nil {
		return nil, err
	}
	return d.open(name, stored)
}

func (d *guardedDesk) open(step string, result []byte) (json.RawMessage, error) {
	if !secrets.Sealed(result) {
		return result, nil
	}
	return d.h.SecretKeys.Open(idempotency.StepName(d.t.key, d.scrub.Text(step)), result)
}

// scrub blots the secrets that a call was handed out of its outcome.
func scrub(s *secrets.Scrubber, out *engine.Outcome) {
	if !s.Active() {
		return
	}
	out.Payload, out.Content, out.Message = s.JSON(out.Payload), s.Text(out.Content), s.Text(out.Message)
	if set, ok := s.Value(out.Set).(map[string]any); ok && out.Set != nil {
		out.Set = set
	}
	for i, name := range out.Remove {
		out.Remove[i] = s.Text(name)
	}
	var panicked *tools.PanicError
	if errors.As(out.Err, &panicked) {
		panicked.Stack = []byte(s.Text(string(panicked.Stack)))
	}
}

// eraseSecrets erases what is sealed of a turn that has its response. What is left of them, a
// sweep erases.
func (h *Handlers) eraseSecrets(ctx context.Context, t *turn) {
	if !t.secret.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseTime)
	defer cancel()
	n, err := h.Journal.Erase(ctx, t.key)
	if err != nil {
		h.often(t.m, slog.LevelWarn, "secret answers could not be erased; a sweep does it", "", "chat", cut(t.Chat), "turn", cut(t.callID), "err", err)
		return
	}
	h.Logger.Debug("secret answers erased", "chat", t.Chat, "turn", t.callID, "records", n)
}

// holds notes that the journal holds secrets of the turn.
func (t *turn) holds(d idempotency.Decision) {
	if d.Turn != nil && d.Turn.Secret() {
		t.secret.Store(true)
	}
}
