package handlers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/secrets"
)

// TestDeferredAnswerIsInTime: it counts as of when it was sent, though the question's time is
// over when a worker with its workflow gets it.
func TestDeferredAnswerIsInTime(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	owner := k.asker("asks", "")
	end := time.Now().Add(time.Minute)
	owner.ask("1", func(e *events.ToolCall) { e.Answer.ExpiresAt = end })
	h, deferred := k.bounded(k.without)
	for seq := uint64(2); seq < 5; seq++ {
		h.Handle(t.Context(), k.answers(seq, owner.question("1"), yes()).Message)
	}
	m := k.again(deferred.all[0], 9)
	m.Stored = end.Add(time.Hour)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
	require.Equal(t, idempotency.Answered, owner.outcome("1"))
}

// TestSecretAnswerIsDeferredSealed: also one to a question that is not known yet, which may be secret.
func TestSecretAnswerIsDeferredSealed(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	keys, err := secrets.Parse([]byte(secrets.NewKey()))
	require.NoError(t, err)
	owner := k.asker("asks", "")
	owner.ask("1", func(e *events.ToolCall) { e.Secret = true })
	for ask, change := range map[string]func(*handlers.Config){"1": k.without, "2": func(*handlers.Config) {}} {
		h, deferred := k.bounded(change, func(c *handlers.Config) { c.SecretKeys = keys })
		for seq := uint64(2); seq < 5; seq++ {
			h.Handle(t.Context(), k.answers(seq, owner.question(ask), "swordfish").Message)
		}
		require.Len(t, deferred.all, 1)
		require.NotContains(t, string(deferred.all[0].Data), "swordfish")
		require.True(t, secrets.Sealed(deferred.all[0].Data))
		if ask != "1" {
			continue
		}
		c := k.Config
		c.SecretKeys = keys
		require.Equal(t, inbound.Erase, handlers.New(c).Handle(t.Context(), k.again(deferred.all[0], 9)).Do)
		require.Equal(t, idempotency.Answered, owner.outcome("1"))
	}
	h, deferred := k.bounded(k.without) // a worker without keys
	for seq := uint64(12); seq < 14; seq++ {
		require.Equal(t, inbound.Nak, h.Handle(t.Context(), k.answers(seq, owner.question("1"), "swordfish").Message).Do)
	}
	beyond := k.answers(14, owner.question("1"), "swordfish")
	require.Equal(t, inbound.Erase, h.Handle(t.Context(), beyond.Message).Do)
	require.Equal(t, events.AnswerUnknown, beyond.result(t).Code)
	require.Empty(t, deferred.all)
}

// TestFloodOfAnswersToNothingIsNotErasedOneByOne: for each the server would write a file again. Answers of
// other tenants are erased, and those to secret questions always.
func TestFloodOfAnswersToNothingIsNotErasedOneByOne(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	owner := k.asker("asks", "")
	owner.ask("1", func(e *events.ToolCall) { e.Secret = true })
	h, _ := k.bounded()
	old := func(m *mail) *inbound.Message {
		m.Stored = time.Now().Add(-time.Hour)
		return m.Message
	}
	done := map[inbound.Do]int{}
	for seq := range uint64(200) {
		done[h.Handle(t.Context(), old(k.answers(seq+2, "t/1", yes()))).Do]++
	}
	require.Equal(t, map[inbound.Do]int{inbound.Erase: 32, inbound.Ack: 168}, done)
	other := old(k.answers(300, "t/1", yes(), func(r *events.ToolCallResponse) { r.App = "other" }))
	other.Subject = k.space.In("default", events.KindToolCallResponse, "other", "WF", "chat")
	require.Equal(t, inbound.Erase, h.Handle(t.Context(), other).Do)
	secret := old(k.answers(301, owner.question("1"), "swordfish"))
	secret.Subject = k.space.In("gpu", events.KindToolCallResponse, "app", "WF", "chat") // of a pool that has not asked
	require.Equal(t, inbound.Erase, h.Handle(t.Context(), secret).Do)
}

// TestAnswerDeferredOpenIsDeferredAgainWithoutAReadOfItsQuestion: that was looked at before, so the
// answer is not erased.
func TestAnswerDeferredOpenIsDeferredAgainWithoutAReadOfItsQuestion(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	owner := k.asker("asks", "")
	owner.ask("1")
	h, deferred := k.bounded(k.without)
	for seq := uint64(2); seq < 5; seq++ {
		h.Handle(t.Context(), k.answers(seq, owner.question("1"), yes()).Message)
	}
	require.Len(t, deferred.all, 1)
	h.Names = nil
	owner.ask("2")
	h.Handle(t.Context(), k.again(deferred.all[0], 9))
	require.Len(t, deferred.all, 2)
	require.Len(t, deferred.all[1].Header[deferral.HeaderOrigin], 2)
}

// Its turn has no message, so what decides the question resumes the turn; parks and takeovers are of turns, never of steps.
func TestDeferredMessageToAQuestionOfAStepTakesOverTheTurn(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]func(k *kit, a *asker) *mail{
		"answer": func(k *kit, a *asker) *mail { return k.answers(2, a.question("1"), yes()) },
		"expiry": func(k *kit, a *asker) *mail {
			return k.expiry(2, a, "1", func(e *events.Expire) { e.Forced = true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			k.LeaseHeld = func(context.Context, idempotency.Lease) (bool, error) { return false, nil }
			owner := k.asker("asks", "")
			owner.step = "0"
			owner.ask("1")
			m := message(k, owner)
			m.Header.Set(deferral.HeaderDeferred, m.Stored.Add(-time.Second).Format(time.RFC3339Nano))
			m.Header.Set(deferral.HeaderDeferrals, "1")
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
			require.NotEqual(t, idempotency.Open, owner.outcome("1"))
			_, err := k.store.Last(t.Context(), owner.key.Private(events.RecordTakeover, "2"))
			require.NoError(t, err)
			for _, of := range []string{owner.asking().Key.Private(events.RecordTakeover, "2"), owner.asking().Key.Private(events.RecordPark, "1")} {
				_, err := k.store.Last(t.Context(), of)
				require.ErrorIs(t, err, idempotency.ErrNotFound)
			}
		})
	}
}
