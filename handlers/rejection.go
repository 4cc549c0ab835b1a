package handlers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/plural"
)

// rejection is why a turn ends before its tool. It is stored in the claim, so that every worker that finishes the turn
// responds the same.
type rejection struct {
	code    events.Code
	content string
	payload any
}

func reject(code events.Code, err error) *rejection {
	text := err.Error()
	var e *events.Error
	if errors.As(err, &e) && e.Msg != "" {
		text = e.Msg
	}
	return &rejection{code: code, content: text, payload: failure(code, text)}
}

func failure(code events.Code, text string) map[string]any {
	return map[string]any{"status": events.StatusError, "message": text, "code": string(code)}
}

func rejectTooOld(age, limit time.Duration) *rejection {
	text := fmt.Sprintf("The event was %s old, the limit is %s: it was not run.", age.Round(time.Second), limit)
	return &rejection{code: events.CodeTooOld, content: text, payload: failure(events.CodeTooOld, text)}
}

func rejectUndeliverable(deliveries uint64) *rejection {
	text := fmt.Sprintf("The event was delivered %d times and no worker lived long enough to claim it: it was not run.", deliveries)
	return &rejection{code: events.CodeInterrupted, content: text, payload: failure(events.CodeInterrupted, text)}
}

// rejectInvalid rejects data that does not fit its model, with the feedback that a language model needs to correct it.
func rejectInvalid(t *turn, violations []model.Violation) *rejection {
	name := t.Binding.ModelName
	content := fmt.Sprintf("The output of agent %s does not fit model %s (%s).", t.Agent, name, plural.Of(len(violations), "violation"))
	if t.Data == nil {
		content = fmt.Sprintf("structured_data is missing or null: it must be the output of agent %s, an object.", t.Agent)
	}
	return &rejection{
		code:    events.CodeValidationFailed,
		content: content,
		payload: map[string]any{
			"status": events.StatusError, "code": string(events.CodeValidationFailed),
			"errors": events.JSONOf(violations), "feedback": model.Feedback(name, violations),
		},
	}
}

// rejectSilently acknowledges the message of a rejected turn whose workflow sends no response to failures
// (`compat: {silent: true}`). A turn that was claimed before gets its response all the same.
func (h *Handlers) rejectSilently(t *turn) (inbound.Disposition, bool) {
	if t.reject == nil || t.Binding == nil || !t.Binding.CompatSilent {
		return inbound.Disposition{}, false
	}
	claimed, err := h.claimedBefore(t)
	switch {
	case err != nil:
		return h.claimFailed(t, err), true
	case claimed:
		return inbound.Disposition{}, false
	}
	h.Metrics.Turn(t.Binding, string(t.reject.code))
	return inbound.Acked(), true
}

// A turn whose event cannot be decoded, but names its chat and turn, is claimed and gets a response with the reason, like
// a turn whose data does not fit its model.

// undecoded rejects the turn of an event that cannot be decoded because of err. An event that does not name a chat and a
// turn becomes a dead letter.
func (h *Handlers) undecoded(ctx context.Context, m *message, err error) inbound.Disposition {
	event, ok := events.Addressee(m.Data)
	if !ok {
		return h.deadLetter(m, deadletter.DecodeReason(err), err)
	}
	t := newTurn(m, event)
	t.setData(events.Seal(event, len(m.Data)))
	if b, errBind := h.Bindings().Resolve(t.Workflow, t.Agent, t.Model); errBind == nil {
		t.Binding = b // for CompatSilent and the labels of metrics
	}
	t.reject = rejectUnusable(event, err)
	return h.admit(ctx, t)
}

// rejectUnusable rejects an event that cannot be decoded. An error inside of structured_data is one of the language
// model, and comes with feedback for it.
func rejectUnusable(event *events.StructuredOutputReady, err error) *rejection {
	var syntax *events.SyntaxError
	if errors.As(err, &syntax) {
		if _, at, ok := strings.Cut(syntax.Pointer, "/structured_data"); ok {
			at = printable(at)
			violations := []model.Violation{{Path: at, Rule: "json", Expected: "JSON that every reader takes: " + syntax.Reason, GotType: "unreadable"}}
			return &rejection{
				code:    events.CodeValidationFailed,
				content: events.Clip(fmt.Sprintf("The output of agent %s cannot be read at %q: %s.", event.Agent, at, syntax.Reason)),
				payload: map[string]any{
					"status": events.StatusError, "code": string(events.CodeValidationFailed),
					"errors": events.JSONOf(violations), "feedback": model.Feedback(event.Model, violations),
				},
			}
		}
	}
	text := events.Clip("The event cannot be used: " + events.LogText(err))
	return &rejection{code: events.CodeValidationFailed, content: text, payload: failure(events.CodeValidationFailed, text)}
}

// printable shortens a pointer, whose keys may hold any characters, and replaces the unprintable ones.
func printable(pointer string) string {
	const long = 200
	if len(pointer) > long {
		pointer = pointer[:long] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(pointer, "?"))
}
