package handlers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// cancel handles the request to cancel a turn. The cancel is stored first, so that the worker that runs the turn, or takes
// it over, finds it. A turn without a claim is claimed and ended here; the owner of a turn that runs is notified; a turn
// with a response stays as it is (docs/journal.md).
func (h *Handlers) cancel(ctx context.Context, m *message, body *events.Message) inbound.Disposition {
	e, err := body.Cancel()
	if err != nil {
		return h.deadLetter(m, deadletter.DecodeReason(err), err)
	}
	if err := h.checkTokens(m, events.KindCancel, e.App, e.Workflow, e.Chat); err != nil {
		return h.deadLetter(m, deadletter.ReasonSubjectMismatch, err)
	}
	if !m.Fresh() {
		return inbound.Left()
	}
	named := *e
	t, found, err := h.cancelledTurn(m.Held, m, e)
	if err != nil || !found {
		for _, id := range callsInID(named.ToolCallID) {
			for _, turn := range exactTurn(named.TurnID, id) {
				m.turns = append(m.turns, turn.key)
			}
		}
	}
	switch {
	case isBusy(err):
		if d, requeued := h.requeue(m, h.ageBasedDelay(m)); requeued {
			return d
		}
		return h.deadLetter(m, deadletter.ReasonUndeliverable, err)
	case errors.Is(err, errTooManyTurns):
		return h.deadLetter(m, deadletter.ReasonUndeliverable, err)
	case err != nil:
		return h.redeliver(m, "the turn that the tool_call_id of a cancel means cannot be found", err)
	case !found:
		if d, requeued := h.requeueEarly(m); requeued {
			return d
		}
		if t == nil || h.age(m) < earlyFor { // it can wait no longer
			return h.deadLetter(m, deadletter.ReasonUndeliverable, fmt.Errorf("no turn of the chat has the tool_call_id %.300q: send the turn key, or run_id too", named.ToolCallID))
		}
	}
	t.reject = &rejection{code: events.CodeCancelled, content: "The turn was cancelled before its tool ran" + reasonSuffix(e.Reason)}
	t.reject.payload = failure(events.CodeCancelled, t.reject.content)
	if d, requeued := h.requeueWhileFull(t, h.isClaimed); requeued {
		return d
	}
	claim, err := h.callEvent(ctx, t, nil)
	if err != nil {
		return h.claimFailed(t, err)
	}
	cancel, err := h.cancelEvent(t, e)
	if err != nil {
		return h.claimFailed(t, err)
	}
	c := idempotency.Claim{
		Key: t.Key, Lease: m.Lease, Event: claim, Signal: true,
		RejectCode: string(events.CodeCancelled), Trace: inbound.Trace(m.Header), Ack: h.acks(m, t.Key, nil, ""),
	}
	if err := h.Journal.Cancel(m.Held, c, cancel); err != nil {
		return h.claimFailed(t, err)
	}
	decision, err := h.Journal.Claim(m.Held, c)
	h.returnRoom(t, decision, err)
	switch {
	case err != nil:
		return h.claimFailed(t, err)
	case decision.Action == idempotency.EndTurn:
		return h.endWithCode(t, decision, decision.Code)
	case decision.Action == idempotency.Leave, decision.Action == idempotency.Run:
		return inbound.Left()
	}
	return h.ackMerged(ctx, m, decision)
}

// isClaimed reports whether a turn was claimed.
func (h *Handlers) isClaimed(t *turn) (bool, error) {
	claims, err := h.Journal.Claims(t.m.Held, t.Key)
	if err != nil {
		return false, fmt.Errorf("read the claim of the turn: %w", err)
	}
	return claims[0] != nil, nil
}

// cancelEvent builds the event chat.tool_call_cancel.
func (h *Handlers) cancelEvent(t *turn, e *events.Cancel) ([]byte, error) {
	return events.Encode(events.KindToolCallCancel, &events.ToolCallCancel{
		Kind: events.KindToolCallCancel, ID: t.CallID, AppID: e.App, ChatID: e.Chat, RunID: e.Run, Turn: e.Turn,
		ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID, WorkflowName: e.Workflow, Reason: e.Reason, UserID: e.UserID,
	}, h.Now())
}

// HandleCancelCopy handles the live copy of an inbound cancel: if the turn runs, the cancel is stored immediately, and its
// owner stops the tool. The message itself, which may have to wait for a slot, does all the rest, so errors of the copy
// are ignored.
func (h *Handlers) HandleCancelCopy(subject string, data []byte) {
	defer func() {
		if p := recover(); p != nil {
			h.Metrics.Panics.Inc()
			h.Logger.Error("the live copy of a cancel caused a panic; its message is handled without it", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	body, err := events.Parse(data)
	if err != nil {
		return
	}
	e, err := body.Cancel()
	if err != nil {
		return
	}
	m := &message{Message: inbound.Message{Subject: subject, Data: data}}
	if h.checkTokens(m, events.KindCancel, e.App, e.Workflow, e.Chat) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), jsapi.Timeout)
	defer cancel()
	t, found, err := h.cancelledTurn(ctx, m, e)
	if err != nil || !found {
		return
	}
	held, err := h.Journal.Load(ctx, t.Key)
	if err != nil || held.Claim == nil || held.Response != nil || held.Cancel != nil {
		return
	}
	event, err := h.cancelEvent(t, e)
	if err == nil {
		err = h.Journal.Cancel(ctx, idempotency.Claim{Key: t.Key}, event)
	}
	if err != nil {
		h.Logger.Debug("a cancel could not be stored from its live copy; its message stores it", "turn", t.CallID, "err", err)
	}
}

// cancelReason returns the reason that the cancel of a turn names, "" for none, or if it cannot be read: the
// turn ends without it.
func (h *Handlers) cancelReason(t *turn, known *idempotency.Turn) string {
	if known == nil || known.Cancel == nil {
		var err error
		if known, err = h.Journal.Load(t.m.Held, t.Key); err != nil || known.Cancel == nil {
			return ""
		}
	}
	e, err := events.ReadCancel(known.Cancel.Data)
	if err != nil {
		return ""
	}
	return e.Reason
}

// reasonSuffix returns the end of a sentence with a reason.
func reasonSuffix(reason string) string {
	if reason == "" {
		return "."
	}
	return ": " + reason
}

// CancelSeen stops the tool of the turn with a key when the live copy of the record of its cancel arrives and the journal
// has that record: a live copy may be forged.
func (h *Handlers) CancelSeen(key subjects.Key) {
	name := key.String()
	h.cancelled.Add(name, h.Now())
	hold, running := h.runs.Hold(name)
	if running && h.isCancelled(context.Background(), idempotency.Hold{Key: key, Claim: hold.Claim}) {
		h.runs.Stop(name, errCancelled)
	}
}

// isCancelled reports whether the journal has a cancel of a turn that runs, by a read from the leader. If that fails, the
// run reads again when it asks, parks or ends.
func (h *Handlers) isCancelled(ctx context.Context, hold idempotency.Hold) bool {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	cancelled, err := h.Journal.Cancelled(ctx, hold)
	if err != nil {
		h.Logger.Debug("the journal cannot be read for a cancel whose live copy has arrived", "key", hold.Key.String(), "err", events.LogText(err))
	}
	return err == nil && cancelled
}
