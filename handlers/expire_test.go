package handlers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestExpiryOfAParkedTurnEntersItsTool(t *testing.T) {
	t.Parallel()
	entered := 0
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		entered++
		return tools.Result{}, nil
	}))
	a := k.asker("turn", "")
	a.ask("1", over)
	a.park("1")
	require.Equal(t, events.AnswerAccepted, k.handled(k.expiry(2, a, "1")).Code)
	require.Equal(t, 1, entered)
	require.True(t, k.response().Success)
	require.Equal(t, events.AckExpired, a.ack("1").Status)
	require.Equal(t, events.AnswerReplayed, k.handled(k.expiry(3, a, "1")).Code, "twice is once")
	require.Equal(t, 1, entered)
}

// TestExpiryIsByTheClockOfTheServer: the worker's own is an hour fast.
func TestExpiryIsByTheClockOfTheServer(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	end := time.Now().Add(30 * time.Minute)
	a := k.asker("turn", "")
	a.ask("1", func(e *events.ToolCall) { e.Answer.ExpiresAt = end })
	k.Now = func() time.Time { return time.Now().Add(time.Hour) }
	server, fails := end.Add(-10*time.Second), error(nil)
	k.ServerTime = func(context.Context) (time.Time, error) { return server, fails }
	m := k.expiry(2, a, "1")
	m.Stored = end.Add(-20 * time.Second)
	d := k.Handle(t.Context(), m.Message)
	require.Equal(t, inbound.Nak, d.Do)
	require.InDelta(t, 10, d.Delay.Seconds(), 0.01)
	fails = errors.New("no responders")
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m.Message).Do)
	require.Equal(t, idempotency.Open, a.outcome("1"))
	m.silent(t, k)
	server, fails = end, nil
	require.Equal(t, events.AnswerAccepted, k.handled(m).Code)
	require.Equal(t, idempotency.Expired, a.outcome("1"))
}

func TestExpiryIsForcedBeforeItsTimeByAnOperator(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	a.ask("1", func(e *events.ToolCall) { e.Answer.ExpiresAt = time.Time{} })
	require.Equal(t, events.AnswerInvalid, k.handled(k.expiry(2, a, "1")).Code, "it has no end")
	forced := func(e *events.Expire) { e.Forced, e.ExpiresAt = true, time.Time{} }
	require.Equal(t, events.AnswerAccepted, k.handled(k.expiry(3, a, "1", forced)).Code)
	require.Equal(t, idempotency.Expired, a.outcome("1"))
}

func TestExpiryOfADecidedQuestionChangesNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	a.ask("1")
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), "x")).Code)
	late := k.expiry(3, a, "1")
	late.Stored = time.Now().Add(2 * time.Hour)
	require.Equal(t, events.AnswerConflict, k.handled(late).Code)
	require.Equal(t, idempotency.Answered, a.outcome("1"))
}

// A read may lack the question of an expiry, and no worker schedules another one.
func TestExpiryOfAQuestionThatNoReadShowsIsRedeliveredForTheLifeOfATurn(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.MaxTurnLife = 2 * time.Hour
	a := k.asker("turn", "")
	forced := func(e *events.Expire) { e.Forced, e.ExpiresAt = true, time.Time{} }
	for name, c := range map[string]struct {
		m    *mail
		want map[time.Duration]inbound.Do
	}{
		"scheduled": {k.expiry(2, a, "2"), map[time.Duration]inbound.Do{0: inbound.Nak, time.Hour: inbound.Nak, 3 * time.Hour: inbound.Ack}},
		"forced":    {k.expiry(3, a, "2", forced), map[time.Duration]inbound.Do{0: inbound.Nak, time.Hour: inbound.Ack}},
	} {
		for age, want := range c.want {
			c.m.Stored = time.Now().Add(-age)
			require.Equal(t, want, k.Handle(t.Context(), c.m.Message).Do, "%s, %s old", name, age)
		}
	}
}

func TestExpiryOnAnotherSubjectIsADeadLetter(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	a.ask("1", over)
	for i, m := range []*mail{
		k.expiry(2, a, "1", func(e *events.Expire) { e.Chat = "other" }),
		k.expiry(3, a, "1", func(e *events.Expire) { e.Key = "app.chat" }),
		k.expiry(4, a, "1", func(e *events.Expire) { e.Workflow = "Other" }),
	} {
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do, i)
		m.silent(t, k)
	}
	dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	require.EqualValues(t, 3, dead.CachedInfo().State.Msgs)
	require.Equal(t, idempotency.Open, a.outcome("1"))
}

func TestCancelOfAParkedTurnEndsItAndClosesItsQuestions(t *testing.T) {
	t.Parallel()
	entered := 0
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		entered++
		return tools.Result{}, nil
	}))
	a := k.asker("turn", "")
	a.ask("1")
	a.ask("two", func(e *events.ToolCall) { e.UserID = "u" })
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), "x")).Code)
	require.Equal(t, inbound.Ack, k.cancelTurn(3, a.id).Do)
	require.Equal(t, idempotency.Cancelled, a.outcome("two"))
	require.Equal(t, events.AckCancelled, a.ack("two").Status)
	require.Empty(t, a.ack("two").UserID)
	require.Equal(t, events.AckAccepted, a.ack("1").Status)

	parked := k.asker("parked", "")
	parked.ask("1")
	parked.park("1")
	require.Equal(t, inbound.Ack, k.cancelTurn(4, parked.id).Do)
	require.Equal(t, events.AckCancelled, parked.ack("1").Status)
	held, err := idempotency.Load(t.Context(), k.store, parked.key)
	require.NoError(t, err)
	require.NotNil(t, held.Response)
	require.Contains(t, string(held.Response.Data), `"code":"cancelled"`)
	require.Zero(t, entered)
}

// The bytes may be a secret.
func TestAnswerThatCannotBeReadIsADeadLetterWithoutItsBytes(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	k := newKit(t, toolFunc(nothing))
	for i, body := range []string{
		`{"response":"` + secret, `{"` + secret + `":1,"` + secret + `":2}`, `{"tool_call_id":7.5e,"response":"` + secret + `"}`,
		`{"kind":"cancel","chat_id":"chat","turn":"t","response":"` + secret + `"}`, `{"response":"` + secret + `"}`,
	} {
		require.Equal(t, inbound.Erase, k.Handle(t.Context(), k.mail(uint64(i+2), events.KindToolCallResponse, []byte(body)).Message).Do)
	}
	other := k.answers(10, "turn/1", secret) // an answer where turns belong
	other.Subject = k.space.In("default", events.KindStructuredOutputReady, "app", "WF", "chat")
	require.Equal(t, events.AnswerForbidden, k.handled(other).Code)
	dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	require.EqualValues(t, 5, dead.CachedInfo().State.Msgs)
	for seq := range uint64(5) {
		m, err := dead.GetMsg(t.Context(), seq+1)
		require.NoError(t, err)
		requireWithheld(t, m, secret)
	}
}

func requireWithheld(t *testing.T, m *jetstream.RawStreamMsg, secret string) {
	t.Helper()
	require.Empty(t, m.Data)
	require.Empty(t, m.Header.Get("Oneturn-SHA256"), "a hash would reveal a short secret")
	require.NotEmpty(t, m.Header.Get(deadletter.HeaderSize))
	for name, values := range m.Header {
		require.NotContains(t, values[0], secret, name)
	}
}

func TestExpiryLongBeforeItsTimeIsScheduledAgain(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	a := k.asker("turn", "")
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	a.ask("1", func(e *events.ToolCall) { e.Answer.ExpiresAt = end })
	var again []*events.Expire
	k.Schedule = func(_ context.Context, e *events.Expire) error {
		again = append(again, e)
		return nil
	}
	require.Equal(t, events.AnswerInvalid, k.handled(k.expiry(2, a, "1")).Code)
	require.Len(t, again, 1)
	require.True(t, again[0].ExpiresAt.Equal(end))
	require.Equal(t, idempotency.Open, a.outcome("1"))
}
