package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
)

// yes is an answer that fits every question of these tests.
func yes() any { return map[string]any{"status": "approved"} }

func (k *kit) cancelTurn(seq uint64, id events.TurnID) inbound.Disposition {
	k.t.Helper()
	body, err := events.EncodeCancel(&events.Cancel{TurnID: id, Workflow: "WF"}, time.Now())
	require.NoError(k.t, err)
	return k.Handle(k.t.Context(), k.mail(seq, events.KindCancel, body).Message)
}

func (k *kit) expiry(seq uint64, a *asker, ask string, change ...func(*events.Expire)) *mail {
	k.t.Helper()
	e := &events.Expire{TurnID: a.id, Workflow: "WF", Key: a.asking().Key.String(), Ask: ask, ToolCallID: a.question(ask), ExpiresAt: time.Now()}
	for _, f := range change {
		f(e)
	}
	body, err := events.EncodeExpire(e, time.Now())
	require.NoError(k.t, err)
	return k.mail(seq, events.KindExpire, body)
}

func over(e *events.ToolCall) { e.Answer.ExpiresAt = time.Now().Add(-time.Second) }

// F28: see docs/faults.md.
func TestAnswerThatIsNotAcceptedGetsAReasonAndChangesNothingF28(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send func(k *kit, a *asker) *mail // what is sent last
		code events.AnswerCode
		want idempotency.Outcome // of question 1
	}{
		"long after no question": {func(k *kit, a *asker) *mail {
			m := k.answers(2, a.question("9"), yes())
			m.Stored = time.Now().Add(-2 * time.Minute)
			return m
		}, events.AnswerUnknown, idempotency.Open},
		"no id of a question": {func(k *kit, _ *asker) *mail {
			m := k.answers(2, "turn", yes())
			m.Stored = time.Now().Add(-2 * time.Minute)
			return m
		}, events.AnswerUnknown, idempotency.Open},
		"after its time": {func(k *kit, a *asker) *mail {
			m := k.answers(2, a.question("1"), yes())
			m.Stored = time.Now().Add(2 * time.Hour)
			return m
		}, events.AnswerExpired, idempotency.Open},
		"after its expiry": {func(k *kit, a *asker) *mail {
			m := k.expiry(2, a, "1")
			m.Stored = time.Now().Add(2 * time.Hour)
			require.Equal(k.t, events.AnswerAccepted, k.handled(m).Code)
			return k.answers(3, a.question("1"), yes())
		}, events.AnswerExpired, idempotency.Expired},
		"after a cancel": {func(k *kit, a *asker) *mail {
			require.Equal(k.t, inbound.Ack, k.cancelTurn(2, a.id).Do)
			return k.answers(3, a.question("1"), yes())
		}, events.AnswerCancelled, idempotency.Cancelled},
		"after the turn": {func(k *kit, a *asker) *mail {
			_, err := a.journal.Finish(k.t.Context(), a.hold, []byte(`{}`))
			require.NoError(k.t, err)
			return k.answers(2, a.question("1"), yes())
		}, events.AnswerClosed, idempotency.Open},
		"from another chat": {func(k *kit, a *asker) *mail {
			m := k.answers(2, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.Chat = "other" })
			m.Subject, m.Stored = k.space.In("default", events.KindToolCallResponse, "app", "WF", "other"), time.Now().Add(-2*time.Minute)
			return m
		}, events.AnswerUnknown, idempotency.Open},
		"from another chat, on the subject of this one": {func(k *kit, a *asker) *mail {
			return k.answers(2, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.Chat = "other" })
		}, events.AnswerForbidden, idempotency.Open},
		"from this chat, on the subject of another": {func(k *kit, a *asker) *mail {
			m := k.answers(2, a.question("1"), yes())
			m.Subject = k.space.In("default", events.KindToolCallResponse, "app", "WF", "other")
			return m
		}, events.AnswerForbidden, idempotency.Open},
		"from another tenant": {func(k *kit, a *asker) *mail {
			m := k.answers(2, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.App = "evil" })
			m.Subject, m.Stored = k.space.In("default", events.KindToolCallResponse, "evil", "WF", "chat"), time.Now().Add(-2*time.Minute)
			return m
		}, events.AnswerUnknown, idempotency.Open},
		"for this tenant, on the subject of another": {func(k *kit, a *asker) *mail {
			m := k.answers(2, a.question("1"), yes())
			m.Subject = k.space.In("default", events.KindToolCallResponse, "evil", "WF", "chat")
			return m
		}, events.AnswerForbidden, idempotency.Open},
		"without a tenant": {func(k *kit, a *asker) *mail {
			return k.answers(2, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.App = "" })
		}, events.AnswerForbidden, idempotency.Open},
		"by way of another workflow": {func(k *kit, a *asker) *mail {
			k.bindWorkflows("WF", "Other")
			m := k.answers(2, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.Workflow = "Other" })
			m.Subject = k.space.In("default", events.KindToolCallResponse, "app", "Other", "chat")
			return m
		}, events.AnswerForbidden, idempotency.Open},
		"by way of another pool, to workers that do not know the workflow": {func(k *kit, a *asker) *mail {
			k.bindWorkflows("Other")
			m := k.answers(2, a.question("1"), yes())
			m.Subject = k.space.In("other", events.KindToolCallResponse, "app", "WF", "chat")
			return m
		}, events.AnswerForbidden, idempotency.Open},
		"from another user": {func(k *kit, a *asker) *mail {
			return k.answers(2, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.UserID = "mallory" })
		}, events.AnswerForbidden, idempotency.Open},
		"without a user": {func(k *kit, a *asker) *mail {
			return k.answers(2, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.UserID = "" })
		}, events.AnswerForbidden, idempotency.Open},
		"from another user, once it is answered": {func(k *kit, a *asker) *mail {
			require.Equal(k.t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), yes())).Code)
			return k.answers(3, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.UserID = "mallory" })
		}, events.AnswerForbidden, idempotency.Answered},
		"second": {func(k *kit, a *asker) *mail {
			require.Equal(k.t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), yes())).Code)
			return k.answers(3, a.question("1"), map[string]any{"status": "declined"})
		}, events.AnswerConflict, idempotency.Answered},
		"second, and wrong": {func(k *kit, a *asker) *mail {
			require.Equal(k.t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), yes())).Code)
			return k.answers(3, a.question("1"), "declined")
		}, events.AnswerConflict, idempotency.Answered},
		"replayed with an old id": {func(k *kit, _ *asker) *mail {
			old := k.asker("old", "")
			old.ask("1")
			require.Equal(k.t, events.AnswerAccepted, k.handled(k.answers(2, old.question("1"), "no")).Code)
			_, err := old.journal.Finish(k.t.Context(), old.hold, []byte(`{}`))
			require.NoError(k.t, err)
			return k.answers(3, old.question("1"), yes())
		}, events.AnswerConflict, idempotency.Open},
		"of the wrong shape": {func(k *kit, a *asker) *mail {
			return k.answers(2, a.question("1"), map[string]any{"status": []any{}})
		}, events.AnswerInvalid, idempotency.Open},
		"of 1 MiB": {func(k *kit, a *asker) *mail {
			m := k.answers(2, a.question("1"), "x")
			m.Data = []byte(strings.Replace(string(m.Data), `"x"`, `"`+strings.Repeat("x", 1<<20)+`"`, 1))
			return m
		}, events.AnswerInvalid, idempotency.Open},
		"that is not JSON": {func(k *kit, _ *asker) *mail {
			return k.mail(2, events.KindToolCallResponse, []byte(`{"response":`))
		}, events.AnswerInvalid, idempotency.Open},
		"without a question": {func(k *kit, _ *asker) *mail {
			return k.mail(2, events.KindToolCallResponse, []byte(`{"app_id":"app","chat_id":"chat","response":1}`))
		}, events.AnswerInvalid, idempotency.Open},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			a := k.asker("turn", "")
			a.ask("1", func(e *events.ToolCall) {
				e.UserID, e.Answer.Schema = "u", map[string]any{
					"type": "object", "required": []any{"status"}, "properties": map[string]any{"status": map[string]any{"type": "string"}},
				}
			})
			m := c.send(k, a)
			v := k.handled(m)
			require.Equal(t, c.code, v.Code, v.Message)
			require.Equal(t, c.want, a.outcome("1"))
			m.silent(t, k)
		})
	}
}

// F28: see docs/faults.md.
func TestAnswerThatIsFasterThanItsQuestionWaitsForItF28(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	m := k.answers(2, a.question("1"), yes())
	last := time.Duration(0)
	for delivery := range uint64(12) {
		m.Lease.Delivery = delivery + 1
		d := k.Handle(t.Context(), m.Message)
		require.Equal(t, inbound.Nak, d.Do)
		require.GreaterOrEqual(t, d.Delay, last)
		last = d.Delay
	}
	require.Equal(t, 10*time.Second, last)
	m.silent(t, k)
	a.ask("1")
	m.Lease.Delivery++
	require.Equal(t, events.AnswerAccepted, k.handled(m).Code)
	require.Equal(t, idempotency.Answered, a.outcome("1"))
}

// F28: see docs/faults.md.
func TestOneOfManyConcurrentAnswersIsAcceptedF28(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	a.ask("1")
	var wg sync.WaitGroup
	mails := make([]*mail, 16)
	for i := range mails {
		mails[i] = k.answers(uint64(i+2), a.question("1"), map[string]any{"n": json.Number(string(rune('0' + i%4)))})
		wg.Go(func() { k.Handle(t.Context(), mails[i].Message) })
	}
	wg.Wait()
	codes := map[events.AnswerCode]int{}
	for _, m := range mails {
		codes[m.result(t).Code]++
	}
	require.Equal(t, map[events.AnswerCode]int{events.AnswerAccepted: 1, events.AnswerReplayed: 3, events.AnswerConflict: 12}, codes)
	ack := a.ack("1")
	require.Equal(t, events.AckAccepted, ack.Status)
	require.Contains(t, []string{"u", ""}, ack.UserID, "a message that came too late may close the question first, and does not state who answered")
	require.Equal(t, a.question("1"), ack.ToolCallID)
}

// gone is a store whose server does not answer.
type gone struct{ idempotency.Store }

func (gone) Last(context.Context, string) (idempotency.Record, error) {
	return idempotency.Record{}, errors.New("no responders")
}

func (g gone) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, g.Last, keys)
}

// F28: see docs/faults.md.
func TestAnswerWhileTheServerIsAwayIsRedeliveredAndAcceptedF28(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	a.ask("1")
	journal := k.Journal
	k.Journal = idempotency.New(gone{k.store}, "w", idempotency.Options{})
	m := k.answers(2, a.question("1"), yes())
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m.Message).Do)
	m.silent(t, k)
	k.Journal = journal
	m.Lease.Delivery++
	require.Equal(t, events.AnswerAccepted, k.handled(m).Code)
}

// bindWorkflows binds the tool of the kit in some workflows.
func (k *kit) bindWorkflows(names ...string) {
	k.t.Helper()
	var declared []bindings.Declaration
	for _, name := range names {
		declared = append(declared, bindings.Declaration{
			Workflow: name, Agent: "A", Model: "M", Tool: "t", Schema: json.RawMessage(`{"type":"object"}`), Effect: bindings.EffectReplay,
		})
	}
	set, err := bindings.Load(k.t.Context(), bindings.Options{Declared: declared})
	require.NoError(k.t, err)
	k.Bindings = func() *bindings.Set { return set }
}

func TestAnswerToAParkedTurnEntersItsTool(t *testing.T) {
	t.Parallel()
	entered := 0
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		entered++
		return tools.Result{}, nil
	}))
	a := k.asker("turn", "")
	a.ask("1")
	a.park("1")
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), yes())).Code)
	require.Equal(t, 1, entered)
	require.True(t, k.response().Success)
}

func TestAnswerWhoseWorkerDiedBeforeTheToolEndedIsTakenOver(t *testing.T) {
	t.Parallel()
	entered := 0
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		entered++
		return tools.Result{}, nil
	}))
	a := k.asker("turn", "")
	a.ask("1")
	a.park("1")
	m := k.answers(2, a.question("1"), yes())
	v, err := idempotency.New(k.store, "dead", idempotency.Options{}).Answer(t.Context(), idempotency.Answer{
		Key: a.key, ID: "1", Lease: m.Lease, Outcome: idempotency.Answered, Digest: "d", Data: []byte(`1`),
		Check: func(idempotency.Record) error { return nil },
	})
	require.NoError(t, err)
	require.Equal(t, idempotency.Run, v.Action)
	m.Lease.Delivery++
	require.Equal(t, events.AnswerAccepted, k.handled(m).Code)
	require.Equal(t, 1, entered)
	require.True(t, k.response().Success)
	require.Equal(t, events.AckAccepted, a.ack("1").Status, "the dead worker had not closed it")
}

func TestAnswerOfAWorkflowUnknownHereIsLeftToAnotherWorker(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	a.ask("1")
	k.bindWorkflows("Other")
	m := k.answers(2, a.question("1"), yes())
	require.Equal(t, inbound.Nak, k.Handle(t.Context(), m.Message).Do)
	require.Equal(t, idempotency.Open, a.outcome("1"))
	m.silent(t, k)
	e := k.expiry(3, a, "1", func(e *events.Expire) { e.Forced = true })
	require.Equal(t, inbound.Nak, k.Handle(t.Context(), e.Message).Do)
	require.Equal(t, idempotency.Open, a.outcome("1"))
	m.Stored = time.Now().Add(-time.Hour)
	d := k.Handle(t.Context(), m.Message)
	require.Equal(t, inbound.Nak, d.Do)
	require.InDelta(t, time.Hour/4, d.Delay, float64(time.Minute))
	require.Equal(t, idempotency.Open, a.outcome("1"))
	k.MaxTurnLife = 30 * time.Minute
	require.Equal(t, events.AnswerAccepted, k.handled(m).Code)
}

func TestAckStatesThatTheAnswerOnlyDismissesTheQuestion(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		answer    any
		dismissed bool
	}{
		{map[string]any{"status": "cancelled"}, true},
		{map[string]any{"status": "dismissed"}, true},
		{map[string]any{"status": "approved"}, false},
		{map[string]any{"status": "cancelled", "comment": "no"}, false},
		{"cancelled", false},
	} {
		k := newKit(t, toolFunc(nothing))
		a := k.asker("turn", "")
		a.ask("1")
		require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), tc.answer)).Code)
		require.Equal(t, tc.dismissed, a.ack("1").Dismissed, "%v", tc.answer)
	}
}
