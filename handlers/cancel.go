package handlers

import (
	"context"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// cancel handles the wish that a turn end (design 5.17): the wish is stored first, so that
// whoever runs the turn, or takes it over, finds it. A turn nobody has claimed is claimed and
// ended here; one that runs is told; one that has its response stays as it is.
func (h *Handlers) cancel(_ context.Context, m *Message, body *events.Message) Disposition {
	e, err := body.Cancel()
	if err != nil {
		return h.dead(m, "", decodeReason(err), err)
	}
	if err := h.checkTokens(m, events.KindCancel, e.App, e.Workflow, e.Chat); err != nil {
		return h.dead(m, e.App, reasonSubjectMismatch, err)
	}
	if !m.Fresh() {
		return leave()
	}
	t := newTurn(m, &events.StructuredOutputReady{TurnID: e.TurnID, Workflow: e.Workflow, UserID: e.UserID})
	t.reject = &rejection{code: events.CodeCancelled, content: "The turn was cancelled before its tool ran" + because(e.Reason)}
	t.reject.payload = failure(events.CodeCancelled, t.reject.content)
	claim, err := h.callEvent(t)
	if err != nil {
		return h.unclaimed(t, err)
	}
	wish, err := events.Encode(events.KindToolCallCancel, &events.ToolCallCancel{
		Kind: events.KindToolCallCancel, ID: t.callID, AppID: e.App, ChatID: e.Chat, RunID: e.Run, Turn: e.Turn,
		ToolCallID: t.callID, CallID: t.callID, Corr: t.callID, WorkflowName: e.Workflow, Reason: e.Reason, UserID: e.UserID,
	}, h.Now())
	if err != nil {
		return h.unclaimed(t, err)
	}
	c := idempotency.Claim{
		Key: t.key, Lease: m.Lease, Event: claim, Signal: true,
		Verdict: string(events.CodeCancelled), Trace: traceOf(m.Header),
	}
	if err := h.Journal.Cancel(m.Held, c, wish); err != nil {
		return h.unclaimed(t, err)
	}
	decision, err := h.Journal.Claim(m.Held, c)
	switch {
	case err != nil:
		return h.unclaimed(t, err)
	case decision.Action == idempotency.Conclude:
		return h.conclude(t, decision, decision.Code)
	case decision.Action == idempotency.Leave, decision.Action == idempotency.Run:
		return leave()
	}
	return ack()
}

// because puts a reason at the end of a sentence.
func because(reason string) string {
	if reason == "" {
		return "."
	}
	return ": " + reason
}

// CancelSeen stops the tool of a turn when the live copy of its cancel arrives. The journal
// key is that of the cancel record.
func (h *Handlers) CancelSeen(key subjects.Key) {
	h.cancelled.Add(key.String(), struct{}{})
	h.running.stop(key.String(), errCancelled)
}
