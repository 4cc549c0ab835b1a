package handlers_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/searchbudget"
	"github.com/oneturn/oneturn/subjects"
)

// lists has the handlers list the names of records by their filter.
func (k *kit) lists(list func(filter string) ([]subjects.Record, error)) {
	k.Names = func(app string) query.Lister {
		require.Equal(k.t, "app", app)
		return func(_ context.Context, filter string) ([]subjects.Record, error) { return list(filter) }
	}
}

// finds has the handlers find the calls of a chat, which have all asked what is looked for, or fail.
func (k *kit) finds(err error, calls ...subjects.Key) *int {
	n := 0
	k.lists(func(filter string) (found []subjects.Record, _ error) {
		asked, claimed := strings.HasPrefix(filter, "e.app.chat.*.0.ask."), filter == "e.app.chat.*.0.tool_call"
		if asked {
			n++
		}
		for _, call := range calls {
			if asked || claimed {
				found = append(found, subjects.Record{Key: call})
			}
		}
		return found, err
	})
	return &n
}

// searched has the kit count how often chats are searched for calls.
func (k *kit) searched(found ...subjects.Key) *int { return k.finds(nil, found...) }

// aged makes a message so old that what it waits for must be there.
func aged(m *mail) *mail {
	m.Stored = time.Now().Add(-time.Hour)
	return m
}

func TestAnswerToNoQuestionCausesASearchFirstAndLast(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	searched := k.searched()
	m := k.answers(2, "x@00000000/1", yes())
	for delivery := range uint64(20) {
		m.Lease.Delivery = delivery + 1
		require.Equal(t, inbound.Nak, k.Handle(t.Context(), m.Message).Do)
	}
	require.Equal(t, 1, *searched)
	k.Handle(t.Context(), k.answers(3, "x@00000000/1", yes()).Message)
	require.Equal(t, 1, *searched, "another answer to it")
	require.Equal(t, events.AnswerUnknown, k.handled(aged(m)).Code)
	require.Equal(t, 2, *searched)
}

func TestIDsThatLeadNowhereCauseNoSearch(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	searched := k.searched()
	for i, id := range []string{"x/1", "x@/1", "x@00/1", "x@0000000/1", "x@000000000/1", "x@0000000G/1", "x@ABCDEF01/1", "@00000000/1", "x@00000000"} {
		require.Equal(t, events.AnswerUnknown, k.handled(aged(k.answers(uint64(2+i), id, yes()))).Code, id)
	}
	require.Zero(t, *searched)
}

func TestAnswerThatNamesItsTurnCausesNoSearch(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	plain := subjects.TurnKey("app", "chat", "", "turn")
	k.lists(func(filter string) ([]subjects.Record, error) {
		require.Equal(t, plain.ReuseNotes(), filter)
		return []subjects.Record{{Key: plain, ID: "0123456789abcdef"}}, nil
	})
	a := k.asker("turn", "run-1")
	a.ask("1")
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.Run = "run-1" })).Code)
	again := k.asker("turn", "")
	again.key = again.key.Reuse("", "turn", "0123456789abcdef")
	id := events.QuestionID(events.QualifiedCallID("turn", again.key.Turn), "1")
	d, err := again.journal.Claim(t.Context(), idempotency.Claim{Key: again.key, Lease: idempotency.Lease{Stream: "IN", Seq: 9, Delivery: 1}, Event: []byte("{}"), Effect: "replay"})
	require.NoError(t, err)
	again.hold = d.Hold
	again.ask("1", func(e *events.ToolCall) { e.ID, e.ToolCallID, e.CallID, e.Corr = id, id, id, id })
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(3, id, yes())).Code)
}

func TestAnswerWaitsForTheBudgetOfItsTenantAndIsRefusedWhenThatStaysUsedUp(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "run-1")
	a.ask("1")
	a.ask("2")
	k.finds(&searchbudget.BusyError{After: time.Minute})
	m := k.answers(2, a.question("1"), yes())
	require.Equal(t, inbound.Nak, k.Handle(t.Context(), m.Message).Do)
	v := k.handled(aged(k.answers(3, a.question("1"), yes())))
	require.Equal(t, events.AnswerBusy, v.Code)
	require.Equal(t, 429, v.Status)
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(4, a.question("2"), yes(), func(r *events.ToolCallResponse) { r.Run = "run-1" })).Code, "its run leads to it")
	k.searched(a.key)
	m.Lease.Delivery++
	require.Equal(t, events.AnswerAccepted, k.handled(m).Code, "the refusal is not taken for an absence")
}

func TestCancelWaitsForTheBudgetOfItsTenant(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "run-1")
	a.ask("1")
	a.park("1")
	body := []byte(`{"kind":"cancel","app_id":"app","chat_id":"chat","workflow_name":"WF","tool_call_id":` + strconv.Quote(a.question("1")) + `}`)
	k.finds(&searchbudget.BusyError{After: time.Minute})
	subject := k.space.In("default", events.KindCancel, "app", "WF", "chat")
	k.HandleCancelCopy(subject, body)
	m := aged(k.mail(2, events.KindCancel, body))
	require.Equal(t, inbound.Nak, k.Handle(t.Context(), m.Message).Do, "however old it is")
	k.finds(idempotency.ErrTooMany)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.mail(3, events.KindCancel, body).Message).Do)
	dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	require.EqualValues(t, 1, dead.CachedInfo().State.Msgs, "a turn that cannot be searched for may exist")
	k.searched(a.key)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
	require.Equal(t, events.CodeCancelled, a.ended().Code)
}
