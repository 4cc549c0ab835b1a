package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/tools"
)

// This file wraps the host of a call: it decides which questions are secret, redacts what the tool sends, and seals the
// results of its steps.

// redactingHost is the host that a tool gets. What the tool sends through it contains no secret that the call has
// received, and the results of its steps are sealed.
type redactingHost struct {
	tools.Host

	run   *Run
	scrub *redact.SecretAnswers
}

// secret reports whether the answer to a question is secret: by the question itself, the manifests, the
// component that displays it, its payload or the schema of the answer.
func (h *redactingHost) secret(q *tools.Question) bool {
	if b := h.run.t.Binding; q.Secret || b != nil && b.Secret {
		return true
	}
	bound := ""
	if h.run.cfg.Bindings != nil {
		manifests := h.run.cfg.Bindings()
		if manifests.AsksSecrets(h.run.t.Workflow, q.Tool) {
			return true
		}
		bound, _ = manifests.Presentation(h.run.t.Workflow, q.Tool)
	}
	return secrets.AsksAs(cmp.Or(q.Component, bound, q.Tool), q.Payload, q.Schema)
}

// Ask implements [tools.Host].
func (h *redactingHost) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	if q.Secret = h.secret(&q); q.Secret {
		if err := h.run.cfg.SecretKeys.Ready(); err != nil {
			return tools.Answer{}, err
		}
		h.run.root.t.Secret.Store(true)
	}
	if s := h.scrub; s.Active() {
		q.Name, q.Tool, q.Component, q.Display = s.Text(q.Name), s.Text(q.Tool), s.Text(q.Component), s.Text(q.Display)
		q.Payload, q.Schema = s.JSON(q.Payload), s.JSON(q.Schema)
	}
	a, err := h.Host.Ask(ctx, q)
	if a.Secret || q.Secret && err == nil {
		a.Secret = true
		h.scrub.AddSecret(a.Value, q.Payload)
	}
	return a, err
}

// Show implements [tools.Host].
func (h *redactingHost) Show(ctx context.Context, s tools.Surface) (string, error) {
	if c := h.scrub; c.Active() {
		s.Name, s.Tool, s.Component, s.Display = c.Text(s.Name), c.Text(s.Tool), c.Text(s.Component), c.Text(s.Display)
		s.Payload = c.JSON(s.Payload)
	}
	return h.Host.Show(ctx, s)
}

// Progress implements [tools.Host].
func (h *redactingHost) Progress(ctx context.Context, p tools.Progress) error {
	p.Message, p.Tool, p.Corr = h.scrub.Text(p.Message), h.scrub.Text(p.Tool), h.scrub.Text(p.Corr)
	return h.Host.Progress(ctx, p)
}

// StepResult implements [tools.Host].
func (h *redactingHost) StepResult(ctx context.Context, name string) (json.RawMessage, bool, error) {
	result, done, err := h.Host.StepResult(ctx, h.scrub.Text(name))
	if err != nil || !done {
		return nil, false, err
	}
	result, err = h.open(name, result)
	return result, err == nil, err
}

// StoreStep implements [tools.Host]. A tool gets the result of a step again in later runs, so a result after a secret
// answer is sealed, not redacted.
func (h *redactingHost) StoreStep(ctx context.Context, name string, result json.RawMessage) (json.RawMessage, error) {
	plain := h.scrub.Text(name)
	if h.scrub.Active() {
		sealed, err := h.run.cfg.SecretKeys.Seal(idempotency.StepName(h.run.t.Key, plain), result)
		if err != nil {
			return nil, err
		}
		h.run.root.t.Secret.Store(true)
		result = sealed
	}
	stored, err := h.Host.StoreStep(ctx, plain, result)
	if err != nil {
		return nil, err
	}
	return h.open(name, stored)
}

func (h *redactingHost) open(step string, result []byte) (json.RawMessage, error) {
	if !secrets.Sealed(result) {
		return result, nil
	}
	return h.run.cfg.SecretKeys.Open(idempotency.StepName(h.run.t.Key, h.scrub.Text(step)), result)
}

// Scrub redacts the secrets that a call has received in its outcome.
func Scrub(s *redact.SecretAnswers, out *engine.Outcome) {
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
