package handlers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// How long a message whose question nobody knows (yet) comes back, ever more slowly: an answer
// may be faster than the record of its question.
const (
	earlyFirst = 100 * time.Millisecond
	earlyLast  = 10 * time.Second
	earlyFor   = 2 * time.Minute // from when the inbound stream took it
)

// inquiry is a stored question. Its record never changes, so that what follows from it alone
// may be decided before anything is stored.
type inquiry struct {
	*events.ToolCall

	key subjects.Key
	ask string // its id in the call
}

// errNoQuestion says that no such question is stored, as far as the journal's leader knows.
var errNoQuestion = errors.New("there is no such question")

// inquire reads a question.
func (h *Handlers) inquire(ctx context.Context, key subjects.Key, ask string) (*inquiry, error) {
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
	return &inquiry{ToolCall: call, key: key, ask: ask}, nil
}

// early gives a message back whose question is not known, for a while. It reports false when
// that is over.
func (h *Handlers) early(m *message) (inbound.Disposition, bool) {
	if h.age(m) >= earlyFor {
		return inbound.Disposition{}, false
	}
	const most = 7 // doublings to earlyLast
	return h.giveBack(m, min(earlyFirst<<min(max(m.offers(), 1)-1, most), earlyLast))
}

// otherPool reports whether the workers of another pool than that of the message have asked: they
// know the tool that goes on with the answer, and these may not.
func (h *Handlers) otherPool(q *inquiry, pool string) bool {
	at, ok := h.Space.ParseIn(q.Answer.Subject)
	return ok && at.Pool != pool
}

// misplaced is why a message about a question does not belong on the subject that it came on, "" if it does:
// workflow and pool of the subject are its sender's word, and the question has its own.
func (h *Handlers) misplaced(q *inquiry, in subjects.Inbound) string {
	switch {
	case h.otherPool(q, in.Pool):
		return textPool
	case subjects.Token(q.WorkflowName) != in.Workflow:
		return textWorkflow
	}
	return ""
}

// offered gives a message that is offered again and whose workflow is unknown here back within the
// binding grace, unread: it was read the first time. It reports false if the budget has no place, and for kinds of
// messages that no binding decides.
func (h *Handlers) offered(m *message, in subjects.Inbound) (inbound.Disposition, bool) {
	switch turn := in.Kind == events.KindStructuredOutputReady; {
	case !h.offersAgain(m, in.Workflow), !turn && !events.AnswerKind(in.Kind) && in.Kind != events.KindExpire,
		turn && h.age(m) > h.MaxEventAge:
		return inbound.Disposition{}, false
	}
	return h.keepPlace(m, h.handOverDelay(m))
}

// offersAgain reports whether a message was offered before and is offered to others now. Workflow is a token.
func (h *Handlers) offersAgain(m *message, workflow string) bool {
	return m.offers() > 1 && !h.knows(workflow) && h.inGrace(m)
}

// putAsideAgain puts a message aside again beyond the budget, without a look at its question. Of one that was not put
// aside before it has to be known whether it is secret, or whose turn it is.
func (h *Handlers) putAsideAgain(m *message, workflow string) (inbound.Disposition, bool) {
	if m.Deferrals == 0 || len(m.turns) == 0 || !h.offersAgain(m, workflow) {
		return inbound.Disposition{}, false
	}
	m.secret = m.Sealed // else it would not have been put aside open
	return h.putAside(m, h.handOverDelay(m))
}

// elsewhere gives a message of a workflow that is unknown here back: another worker may know it,
// while this one could only end its turn. That is so within the binding grace, and for an open
// question until its turn is past its life: who has waited for days for an answer does not lose
// it to a deploy without the workflow. Workflow is a token; q is the question, nil if it is not
// known. Waits says that the question has to wait for another worker, and the message cannot be given back.
func (h *Handlers) elsewhere(m *message, workflow string, q *inquiry) (d inbound.Disposition, back, waits bool) {
	if h.knows(workflow) {
		return inbound.Disposition{}, false, false
	}
	delay := h.handOverDelay(m)
	if !h.inGrace(m) {
		age := h.age(m)
		if q == nil || h.MaxTurnLife > 0 && age >= h.MaxTurnLife || h.hasEnded(m, q.key) {
			return inbound.Disposition{}, false, false
		}
		h.often(m, slog.LevelWarn, "no worker has the workflow of an open question: start one that has it, or send the answer again then", "",
			"workflow", q.WorkflowName, "chat", q.ChatID, "question", q.ToolCallID, "seq", m.Lease.Seq, "age", age.Round(time.Second))
		delay = h.rarely(m)
	}
	d, back = h.giveBack(m, delay)
	return d, back, !back && q != nil
}

// hasEnded reports whether a turn has its response, as far as a read tells.
func (h *Handlers) hasEnded(m *message, key subjects.Key) bool {
	ended, err := h.Journal.Ended(m.Held, key)
	return err == nil && ended
}

func (h *Handlers) knows(workflow string) bool {
	set := h.Bindings()
	if name, hashed, err := subjects.Untoken(workflow); err == nil && !hashed {
		return set.WorkflowDigest(name) != ""
	}
	for _, name := range set.Workflows() {
		if subjects.Token(name) == workflow {
			return true
		}
	}
	return false
}

// acks returns the function that makes the event that closes a question, out of the question's
// own. Known is the question, if there is only one and it is known; user sends m.
func (h *Handlers) acks(m *message, key subjects.Key, known *inquiry, user string) func(idempotency.Record) ([]byte, error) {
	return func(decided idempotency.Record) ([]byte, error) {
		q := known
		if q == nil {
			var err error
			if q, err = h.askedBy(m, key, decided.Key); err != nil {
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
		return events.Encode(events.KindToolCallAck, q.Ack(status, by), h.Now())
	}
}

// askedBy reads the question that a record is about. One that cannot be read is closed all the
// same: what is known of it are its ids.
func (h *Handlers) askedBy(m *message, key subjects.Key, record string) (*inquiry, error) {
	r, _ := subjects.ParseKey(record)
	asked, err := h.Journal.QuestionRecord(m.Held, key, r.ID)
	if err != nil {
		return nil, err
	}
	if call, err := query.Question(key, asked.Data); err == nil {
		return &inquiry{ToolCall: call, key: key, ask: r.ID}, nil
	}
	ids := query.IDs(key, events.TurnID{})
	ask, _, _ := subjects.Untoken(r.ID)
	id := events.QuestionID(events.CallID(ids, key.Turn), ask)
	return &inquiry{key: key, ask: ask, ToolCall: &events.ToolCall{
		ID: id, ToolCallID: id, CallID: id, Corr: id, AppID: ids.App, ChatID: ids.Chat, RunID: ids.Run, Turn: ids.Turn,
	}}, nil
}
