package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/searchbudget"
	"github.com/oneturn/oneturn/subjects"
)

// The question that an answer or an expiry is about: finding it by its tool_call_id, waiting for its record, checking that
// the message belongs to it, and the event that closes it.

// How long a message whose question is not stored (yet) is requeued, with growing delays: an answer may arrive before the
// record of its question.
const (
	earlyFirst = 100 * time.Millisecond
	earlyLast  = 10 * time.Second
	earlyFor   = 2 * time.Minute // from when the inbound stream took it
)

// storedQuestion is a question in the journal. Its record never changes, so decisions that need only the question are
// made before anything is stored.
type storedQuestion struct {
	*events.ToolCall

	key subjects.Key
	ask string // its id in the call
}

// errNoQuestion reports that no such question is stored, by a read from the leader of the journal.
var errNoQuestion = errors.New("there is no such question")

// readQuestion reads a question.
func (h *Handlers) readQuestion(ctx context.Context, key subjects.Key, ask string) (*storedQuestion, error) {
	record, err := h.Journal.QuestionRecord(ctx, key, subjects.Token(ask))
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return nil, errNoQuestion
	case err != nil:
		return nil, err
	case record.Err != nil:
		return nil, query.ErrUnreadable
	}
	call, err := query.Question(key, record.Data)
	if err != nil {
		return nil, err
	}
	return &storedQuestion{ToolCall: call, key: key, ask: ask}, nil
}

// requeueEarly requeues a message whose question is not known, for [earlyFor]. It reports false after that.
func (h *Handlers) requeueEarly(m *message) (inbound.Disposition, bool) {
	if h.age(m) >= earlyFor {
		return inbound.Disposition{}, false
	}
	const most = 7 // doublings to earlyLast
	return h.requeue(m, min(earlyFirst<<min(max(m.deliveries(), 1)-1, most), earlyLast))
}

// otherPool reports whether workers of another pool asked the question: they know the tool that continues with the
// answer, and the workers of this pool may not.
func (h *Handlers) otherPool(q *storedQuestion, pool string) bool {
	at, ok := h.Space.ParseIn(q.Answer.Subject)
	return ok && at.Pool != pool
}

// misplaced is why a message about a question does not belong on its subject, "" if it does: the sender chose workflow
// and pool of the subject, and the question has its own.
func (h *Handlers) misplaced(q *storedQuestion, in subjects.Inbound) string {
	switch {
	case h.otherPool(q, in.Pool):
		return textPool
	case subjects.Token(q.WorkflowName) != in.Workflow:
		return textWorkflow
	}
	return ""
}

// acks returns the function that makes the event that closes a question from the event of the question. Known is the
// question, if there is only one and it is known; user is the sender of m.
func (h *Handlers) acks(m *message, known *storedQuestion, user string) func(idempotency.Record) ([]byte, error) {
	return func(decided idempotency.Record) ([]byte, error) {
		q := known
		if q == nil {
			var err error
			if q, err = h.questionOfRecord(m, decided.Key); err != nil {
				return nil, err
			}
		}
		status, by := events.AckCancelled, ""
		switch idempotency.Outcome(decided.Meta.Outcome) {
		case idempotency.Answered:
			if status, by = events.AckAccepted, q.UserID; decided.Meta.Lease.Same(m.Lease) {
				by = user
			}
		case idempotency.Expired:
			status = events.AckExpired
		case idempotency.Open, idempotency.Cancelled:
		}
		ack := q.Ack(status, by)
		ack.Dismissed = status == events.AckAccepted && !q.Secret && events.IsDismissal(decided.Data)
		return events.Encode(events.KindToolCallAck, ack, h.Now())
	}
}

// questionOfRecord reads the question that a record is about. An unreadable question is closed all the same: its ids are in
// the key of the record.
func (h *Handlers) questionOfRecord(m *message, record string) (*storedQuestion, error) {
	r, _ := subjects.ParseKey(record)
	key := r.Key // of the call that asked
	asked, err := h.Journal.QuestionRecord(m.Held, key, r.ID)
	if err != nil {
		return nil, err
	}
	if call, err := query.Question(key, asked.Data); err == nil {
		return &storedQuestion{ToolCall: call, key: key, ask: r.ID}, nil
	}
	ids := query.IDs(key, events.TurnID{})
	ask, _, _ := subjects.Untoken(r.ID)
	call := events.CallID(ids, key.Turn)
	if step := subjects.StepOf(key.Call); step != "" {
		call = events.StepID(call, step)
	}
	id := events.QuestionID(call, ask)
	return &storedQuestion{key: key, ask: ask, ToolCall: &events.ToolCall{
		ID: id, ToolCallID: id, CallID: id, Corr: id, AppID: ids.App, ChatID: ids.Chat, RunID: ids.Run, Turn: ids.Turn,
	}}, nil
}

// Bounds of the memory of questions that a search has not found, so that their answers do not cause a search of the chat
// at each delivery.
const (
	missedQuestions = 10_000
	missedFor       = 30 * time.Second
)

// findQuestion returns the question with a tool_call_id. The id leads to its key; where it is a qualified one and the
// answer does not name the run, the turns under a reused key and then the calls of the chat that have asked such a
// question are searched by their names. Afresh: the chat is searched although a recent search has not found it. It fails
// with a [searchbudget.BusyError] if the chat cannot be searched now.
func (h *Handlers) findQuestion(ctx context.Context, r *events.ToolCallResponse, afresh bool) (*storedQuestion, error) {
	callID, ask, ok := events.ParseQuestionID(r.ToolCallID)
	if !ok {
		return nil, fmt.Errorf("%w: tool_call_id is not <call>/<question>", errNoQuestion)
	}
	for _, ref := range query.RefTo(r.TurnID, callID, ask).Refs() {
		if q, err := h.findQuestionOf(ctx, ref, r, ask, afresh); !errors.Is(err, errNoQuestion) || errors.Is(err, errTooManyTurns) {
			return q, err
		}
	}
	return nil, errNoQuestion
}

// findQuestionOf is findQuestion for one of the calls that the id may mean.
func (h *Handlers) findQuestionOf(ctx context.Context, ref *query.Ref, r *events.ToolCallResponse, ask string, afresh bool) (*storedQuestion, error) {
	if key, _, ok := ref.Exact(); ok {
		if q, err := h.questionWithID(ctx, key, ask, r.ToolCallID); !errors.Is(err, errNoQuestion) {
			return q, err
		}
	}
	_, qualified := ref.Qualified()
	missed := subjects.Token(r.App) + "." + subjects.Token(r.Chat) + "." + subjects.TurnToken(r.Run, r.ToolCallID) + "." + ref.Step
	if !qualified || !afresh && h.missed.Has(missed, h.Now()) {
		return nil, errNoQuestion
	}
	for _, list := range []func(context.Context, *query.Ref) ([]subjects.Key, error){h.index(r.App).Reused, h.index(r.App).Asking} {
		keys, err := list(ctx, ref)
		switch {
		case errors.Is(err, idempotency.ErrTooMany):
			return nil, errTooManyTurns
		case err != nil:
			return nil, err
		}
		for _, key := range keys {
			if q, err := h.questionWithID(ctx, key, ask, r.ToolCallID); !errors.Is(err, errNoQuestion) {
				return q, err
			}
		}
	}
	h.missed.Add(missed, h.Now())
	return nil, errNoQuestion
}

// questionWithID reads a question that was asked with a tool_call_id.
func (h *Handlers) questionWithID(ctx context.Context, key subjects.Key, ask, toolCallID string) (*storedQuestion, error) {
	q, err := h.readQuestion(ctx, key, ask)
	if err == nil && q.ToolCallID != toolCallID {
		return nil, errNoQuestion
	}
	return q, err
}

// index lists the names of a tenant's records.
func (h *Handlers) index(app string) query.Lister {
	if h.Names == nil {
		return nil
	}
	return h.Names(subjects.Token(app))
}

var errTooManyTurns = fmt.Errorf("%w that can be found: too many turns of the chat have asked one like it: send run_id too", errNoQuestion)

// isBusy reports whether the chat of a question cannot be searched now.
func isBusy(err error) bool {
	_, busy := errors.AsType[*searchbudget.BusyError](err)
	return busy
}
