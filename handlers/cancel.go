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
	"github.com/oneturn/oneturn/internal/query"
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
		for _, id := range query.CallsIn(named.ToolCallID) {
			for _, turn := range exactTurn(named.TurnID, id) {
				m.mayHold = append(m.mayHold, turn.key)
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
		RejectCode: string(events.CodeCancelled), Trace: inbound.Trace(m.Header), Ack: h.acks(m, nil, ""),
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
	h.cancelCopies.Add(name, h.Now())
	hold, running := h.runs.Hold(name)
	if running && h.cancelStored(context.Background(), idempotency.Hold{Key: key, Claim: hold.Claim}) {
		h.runs.Stop(name, errCancelled)
	}
}

// cancelStored reports whether the journal has the cancel of a running turn whose live copy has arrived, by a read from the
// leader. If that fails, the run reads again when it asks, parks or ends.
func (h *Handlers) cancelStored(ctx context.Context, hold idempotency.Hold) bool {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	cancelled, err := h.Journal.Cancelled(ctx, hold)
	if err != nil {
		h.Logger.Debug("the journal cannot be read for a cancel whose live copy has arrived", "key", hold.Key.String(), "err", events.LogText(err))
	}
	return err == nil && cancelled
}

// The turn that a cancel is about.
//
// A cancel names its turn by the turn key, or by the tool_call_id of any of its events alone. The latter is the id of a
// call, or of a question or surface of it, and leads to the first of these that was claimed: the turn that has asked the
// question, the turn whose key is in the id, a turn under a reused key, a turn with a run id that the cancel does not
// name. The last two have to be searched for.

// namedTurn is a turn that a tool_call_id may mean.
type namedTurn struct {
	id     events.TurnID
	key    subjects.Key
	callID string

	searched bool // its id was found, and not only could be the one
}

// cancelledTurn returns the turn that a cancel is about. Found is false if it is named by an id that belongs to the events
// of a turn, and no such turn was claimed; the turn is the best guess then, and nil without any.
func (h *Handlers) cancelledTurn(ctx context.Context, m *message, e *events.Cancel) (t *turn, found bool, err error) {
	event := &events.StructuredOutputReady{TurnID: e.TurnID, Workflow: e.Workflow, UserID: e.UserID}
	t, found = newTurn(m, event), true
	if e.ToolCallID != "" {
		var named *namedTurn
		named, found, err = h.turnOfCall(ctx, e)
		if err != nil || named == nil {
			return nil, false, err
		}
		e.TurnID, event.TurnID = named.id, named.id
		t.Key, t.Name, t.CallID = named.key, named.key.String(), named.callID
	}
	t.setData(events.CanonicalData(event, 0))
	return t, found, nil
}

// turnOfCall returns the turn that the tool_call_id of a cancel means, and whether that is certain: it was claimed, or the
// cancel may be earlier than its turn.
func (h *Handlers) turnOfCall(ctx context.Context, e *events.Cancel) (named *namedTurn, certain bool, err error) {
	ids := query.CallsIn(e.ToolCallID)
	if len(ids) == 1 && (e.Run != "" || !qualified(ids[0])) {
		if exact := exactTurn(e.TurnID, ids[0]); len(exact) > 0 {
			return &exact[0], true, nil
		}
	}
	candidates := []func() ([]namedTurn, error){func() ([]namedTurn, error) { return h.turnThatAsked(ctx, e) }}
	for _, id := range ids {
		candidates = append(candidates,
			func() ([]namedTurn, error) { return exactTurn(e.TurnID, id), nil },
			func() ([]namedTurn, error) { return h.turnsOfReusedKey(ctx, e, id) },
			func() ([]namedTurn, error) { return h.turnsOfRuns(ctx, e, id) })
	}
	for _, find := range candidates {
		may, err := find()
		if err != nil {
			return nil, false, err
		}
		if claimed, err := h.firstClaimed(ctx, may); claimed != nil || err != nil {
			return claimed, true, err
		}
		if len(may) > 0 && (named == nil || may[0].searched) {
			named = &may[0]
		}
	}
	return named, false, nil
}

// exactTurn returns the turn whose key is in the id of a call; none if a turn with that key has another id.
func exactTurn(id events.TurnID, callID string) []namedTurn {
	key, turn, ok := query.RefTo(id, callID, "").Exact()
	if !ok {
		return nil
	}
	id.Turn = turn
	return []namedTurn{{id, key, callID, false}}
}

func qualified(callID string) bool {
	_, ok := events.Unqualified(callID)
	return ok
}

// turnThatAsked returns the turn that has asked the question of an id, if the id leads to it without a search.
func (h *Handlers) turnThatAsked(ctx context.Context, e *events.Cancel) ([]namedTurn, error) {
	call, ask, ok := events.ParseQuestionID(e.ToolCallID)
	exact := exactTurn(e.TurnID, call)
	if !ok || len(exact) == 0 {
		return nil, nil
	}
	q, err := h.questionWithID(ctx, exact[0].key, ask, e.ToolCallID)
	switch {
	case errors.Is(err, errNoQuestion), errors.Is(err, query.ErrUnreadable):
		return nil, nil
	case err != nil:
		return nil, err
	}
	exact[0].id.Run, exact[0].id.Turn, exact[0].searched = q.RunID, q.Turn, true
	return exact, nil
}

// turnsOfReusedKey returns the turns under a reused key that have an id.
func (h *Handlers) turnsOfReusedKey(ctx context.Context, e *events.Cancel, callID string) ([]namedTurn, error) {
	keys, err := h.index(e.App).Reused(ctx, query.RefTo(e.TurnID, callID, ""))
	return turnsFound(e, keys, callID, err)
}

// turnsOfRuns returns the turns with run ids that have an id, for a cancel that names no run. Where a chat has too many
// turns to look at, those that have called the step of the id, or asked its question, are left.
func (h *Handlers) turnsOfRuns(ctx context.Context, e *events.Cancel, callID string) ([]namedTurn, error) {
	if e.Run != "" {
		return nil, nil
	}
	keys, err := h.index(e.App).Claimed(ctx, query.RefTo(e.TurnID, callID, ""))
	if errors.Is(err, idempotency.ErrTooMany) {
		for _, ref := range query.RefsIn(e.TurnID, e.ToolCallID, callID) {
			switch {
			case ref.Ask != subjects.Token(""):
				keys, err = h.index(e.App).Asking(ctx, ref)
			case ref.Step != "":
				keys, err = h.index(e.App).Called(ctx, ref)
			default:
				continue
			}
			if err != nil || len(keys) > 0 {
				break
			}
			err = idempotency.ErrTooMany
		}
	}
	for i := range keys {
		keys[i] = keys[i].OfTurn()
	}
	return turnsFound(e, keys, callID, err)
}

// turnsFound returns the turns that a search for an id has found.
func turnsFound(e *events.Cancel, keys []subjects.Key, callID string, err error) (may []namedTurn, _ error) {
	if errors.Is(err, idempotency.ErrTooMany) {
		return nil, errTooManyTurns
	}
	id := e.TurnID
	id.Turn, _ = events.Unqualified(callID)
	for _, key := range keys {
		may = append(may, namedTurn{id, key, callID, true})
	}
	return may, err
}

// firstClaimed returns the first of several turns that was claimed, with the ids of its claim; nil if none was.
func (h *Handlers) firstClaimed(ctx context.Context, may []namedTurn) (*namedTurn, error) {
	if len(may) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	keys := make([]subjects.Key, len(may))
	for i := range may {
		keys[i] = may[i].key
	}
	claims, err := h.Journal.Claims(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("find the claimed turn of a tool_call_id: %w", err)
	}
	for i, claim := range claims {
		if claim == nil {
			continue
		}
		if call, _ := query.Call(may[i].key, claim); call != nil {
			may[i].id.Run, may[i].id.Turn = call.RunID, call.Turn
		}
		return &may[i], nil
	}
	return nil, nil //nolint:nilnil // there is none
}
