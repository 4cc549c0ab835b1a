package handlers

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
)

// rejection is why a turn ends before its tool. It is stored in the claim, so that whoever
// finishes the turn says the same.
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

// rejectInvalid answers data that does not fit its model with what a language model needs to
// correct itself.
func rejectInvalid(t *turn, faults []model.Violation) *rejection {
	name := t.Binding.ModelName
	content := fmt.Sprintf("The output of agent %s does not fit model %s (%s).", t.Agent, name, plural(len(faults), "fault"))
	if t.Data == nil {
		content = fmt.Sprintf("structured_data is missing or null: it must be the output of agent %s, an object.", t.Agent)
	}
	return &rejection{
		code:    events.CodeValidationFailed,
		content: content,
		payload: map[string]any{
			"status": events.StatusError, "code": string(events.CodeValidationFailed),
			"errors": events.JSONOf(faults), "feedback": model.Feedback(name, faults),
		},
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// conclude stores the response of a turn whose tool is not entered (any more). What the claim
// says goes before what this worker's manifests say.
func (h *Handlers) conclude(t *turn, d idempotency.Decision, code events.Code) inbound.Disposition {
	t.NoteSecrets(d)
	r := t.response()
	if t.Binding != nil {
		r.ToolName = t.Binding.Tool
	}
	t.Asked = t.Asked || d.Turn != nil && len(d.Turn.Questions()) > 0
	stored := t.reject
	if d.Turn != nil && d.Turn.Claim != nil && code != events.CodeStateCorrupt {
		stored = fromClaim(r, d.Turn.Claim)
	}
	r.Status, r.Code = events.StatusError, code
	unsafe := d.Hold.Effect == string(bindings.EffectUnsafe)
	switch {
	// Nobody else enters an unsafe tool. Any other may have been entered by who took the turn over.
	case t.waited && unsafe && code == events.CodeInterrupted:
		r.Content = fmt.Sprintf("The worker stopped before tool %s was entered: it did not run.", r.ToolName)
	case t.waited && unsafe && code == events.CodeCancelled:
		r.Content = fmt.Sprintf("The turn was cancelled before tool %s was entered: it did not run.", r.ToolName)
	case t.waited && code == events.CodeCancelled:
		r.Content = fmt.Sprintf("The turn was cancelled before this worker entered tool %s.", r.ToolName)
	case t.stuck != "" && (stored == nil || stored.code != code):
		r.Content = fmt.Sprintf("Tool %s cannot go on in the worker that took the turn up (%s): what it did before may or may not have happened, "+
			"and it is not run again.", r.ToolName, t.stuck)
	case code == events.CodeInterrupted && (stored == nil || stored.code != code):
		r.Content = fmt.Sprintf("The worker stopped, or lost the turn, while tool %s ran: its effect may or may not have happened, and it is not run again.", r.ToolName)
	case code == events.CodeCancelled && d.Turn != nil && d.Turn.WasParked(d.Hold.Epoch-1):
		r.Content = fmt.Sprintf("The turn was cancelled while tool %s waited for a person: what it did before it asked may have happened, and nothing after it.", r.ToolName)
	case code == events.CodeCancelled && (stored == nil || stored.code != code):
		r.Content = fmt.Sprintf("The turn was cancelled while tool %s ran: its effect may or may not have happened.", r.ToolName)
	case code == events.CodeTooLarge && d.Turn != nil && d.Turn.Oversized():
		r.Content = fmt.Sprintf("The turn has more records in the journal than can be read: the effect of tool %s may or may not have happened, and it is not run again.", r.ToolName)
	case code == events.CodeExpired:
		r.Content = fmt.Sprintf("The turn was open for longer than %s: the effect of tool %s may or may not have happened.", h.MaxTurnLife, r.ToolName)
	case code == events.CodeStateCorrupt:
		r.Content = "The journal record of the turn cannot be read: it was not run (again)."
		h.often(t.m, slog.LevelError, "a journal record cannot be read; the turn ends as state_corrupt", "", "key", t.Key.String())
	case stored != nil:
		r.Content, r.Payload = stored.content, stored.payload
	default:
		r.Content = "The turn was not run: " + string(code) + "."
	}
	if code == events.CodeCancelled && (stored == nil || stored.code != code) {
		if reason := h.cancelReason(t, d.Turn); reason != "" {
			r.Content = events.Clip(r.Content + " Reason: " + reason)
		}
	}
	if r.Payload == nil {
		r.Payload = failure(code, r.Content)
	}
	if t.reject != nil && t.m.Lease.Delivery > maxDeliveries && d.Turn == nil {
		if dead := h.dead(t.m, deadletter.ReasonUndeliverable, errors.New(t.reject.content)); dead.Do != inbound.Ack {
			return dead
		}
	}
	return h.end(t, d.Hold, r)
}

// fromClaim fills r from a stored claim and returns the verdict it holds, if any.
func fromClaim(r *events.ToolResponse, claim *idempotency.Record) *rejection {
	body, err := events.Parse(claim.Data)
	if err != nil {
		return nil
	}
	var call events.ToolCall
	if err := body.As(&call); err != nil {
		return nil
	}
	r.ToolName, r.Agent, r.WorkflowName = call.ToolName, call.Agent, call.WorkflowName
	if call.Rejection == nil {
		return nil
	}
	return &rejection{code: call.Code, content: call.Rejection.Content, payload: call.Rejection.Payload}
}
