package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// deferred has the messages that a worker has deferred.
type deferred struct {
	all []deferral.Message
	err error
}

// bounded is a worker of the kit that requeues two messages of a tenant, and three in all. Its clock
// stands still.
func (k *kit) bounded(change ...func(*handlers.Config)) (*handlers.Handlers, *deferred) {
	const share, places = 64, 3
	a, c, now := &deferred{}, k.Config, time.Now()
	c.Now = func() time.Time { return now }
	c.MaxAckPending = places * share
	c.Defer = func(_ context.Context, d deferral.Message) error {
		a.all = append(a.all, d)
		return a.err
	}
	for _, f := range change {
		f(&c)
	}
	return handlers.New(c), a
}

// without is a worker without the workflow of the kit.
func (k *kit) without(c *handlers.Config) {
	set, err := bindings.Load(k.t.Context(), bindings.Options{Declared: []bindings.Declaration{
		{Workflow: "Other", Agent: "A", Model: "M", Tool: "t", Schema: json.RawMessage(`{"type":"object"}`), Effect: bindings.EffectIdempotent},
	}})
	require.NoError(k.t, err)
	c.Bindings = func() *bindings.Set { return set }
}

// again is the message that the server delivers for one that was deferred.
func (k *kit) again(d deferral.Message, seq uint64) *inbound.Message {
	return &inbound.Message{
		Subject: d.Subject, Header: d.Header, Data: d.Data, Stored: time.Now(),
		Lease: idempotency.Lease{Stream: "IN", Seq: seq, Delivery: 1}, Held: k.t.Context(), Fresh: func() bool { return true },
	}
}

// TestSharesFollowTheConsumer: an operator changes max_ack_pending under a running worker.
func TestSharesFollowTheConsumer(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	h, deferred := k.bounded(k.without)
	next := uint64(1)
	given := func() (n int) { // in a row, until one is deferred
		for ; n < 100; n++ {
			next++
			if h.Handle(t.Context(), k.message(next, 1)).Do == inbound.Ack {
				break
			}
		}
		return n
	}
	require.Equal(t, 2, given())
	h.SetMaxAckPending(11 * 64)
	require.Equal(t, 4, given(), "half of eleven, less the two that are requeued already")
	h.SetMaxAckPending(64)
	require.Zero(t, given(), "places that are taken stay taken")
	h.SetMaxAckPending(-1)
	require.Equal(t, 100, given(), "no limit counts as 20,000")
	require.Len(t, deferred.all, 3)
}

// TestMessagesThatWaitTakeNoMoreThanTheBudget: whatever they wait for, a tenant's take two places, the
// others are deferred, and another tenant finds a place.
func TestMessagesThatWaitTakeNoMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		known bool
		m     func(k *kit, a *asker, seq uint64) *inbound.Message
		done  inbound.Do
	}{
		"turn of an unknown workflow": {false, func(k *kit, _ *asker, seq uint64) *inbound.Message { return k.message(seq, 1) }, inbound.Ack},
		"answer of an unknown workflow": {false, func(k *kit, a *asker, seq uint64) *inbound.Message {
			return k.answers(seq, a.question("1"), yes()).Message
		}, inbound.Ack},
		"expiry of an unknown workflow": {false, func(k *kit, a *asker, seq uint64) *inbound.Message { return k.expiry(seq, a, "1").Message }, inbound.Ack},
		"answer before its question": {true, func(k *kit, a *asker, seq uint64) *inbound.Message {
			return k.answers(seq, a.question("2"), yes()).Message
		}, inbound.Erase},
		"expiry before its question": {true, func(k *kit, a *asker, seq uint64) *inbound.Message { return k.expiry(seq, a, "2").Message }, inbound.Ack},
		"expiry before its time": {true, func(k *kit, a *asker, seq uint64) *inbound.Message {
			a.ask("soon", func(e *events.ToolCall) { e.Answer.ExpiresAt = time.Now().Add(30 * time.Second) })
			return k.expiry(seq, a, "soon").Message
		}, inbound.Ack},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			owner := k.asker("asks", "")
			owner.ask("1")
			h, deferred := k.bounded(func(c *handlers.Config) {
				if !one.known {
					k.without(c)
				}
			})
			for i := range 4 {
				m := one.m(k, owner, uint64(i+2))
				d := h.Handle(t.Context(), m)
				if i < 2 {
					require.Equal(t, inbound.Nak, d.Do)
					require.Positive(t, d.Delay)
					continue
				}
				require.Equal(t, one.done, d.Do)
				require.Len(t, deferred.all, i-1)
				got := deferred.all[i-2]
				require.Equal(t, k.again(got, 1).Subject, got.Subject)
				require.JSONEq(t, string(m.Data), string(got.Data))
				require.True(t, got.At.After(time.Now()))
			}
			require.NotEqual(t, deferred.all[0].ID, deferred.all[1].ID)
			other := k.answers(9, "t/1", yes(), func(r *events.ToolCallResponse) { r.App = "other" })
			other.Subject = k.space.In("default", events.KindToolCallResponse, "other", "WF", "chat")
			require.Equal(t, inbound.Nak, h.Handle(t.Context(), other.Message).Do)
		})
	}
}

// TestLongWaitTakesNoPlace: an answer of a workflow that was retired an hour ago is deferred for a
// part of that.
func TestLongWaitTakesNoPlace(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	owner := k.asker("asks", "")
	owner.ask("1")
	h, deferred := k.bounded(k.without)
	m := k.answers(2, owner.question("1"), yes())
	m.Stored = time.Now().Add(-time.Hour)
	require.Equal(t, inbound.Ack, h.Handle(t.Context(), m.Message).Do)
	require.Len(t, deferred.all, 1)
	require.WithinRange(t, deferred.all[0].At, time.Now().Add(14*time.Minute), time.Now().Add(20*time.Minute))
	m.silent(t, k)
}

// TestMessageIsSettledOnlyWhenItIsCertainlyDeferred: not while the outcome is unknown, and not when the
// lease may be another worker's by then.
func TestMessageIsSettledOnlyWhenItIsCertainlyDeferred(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	h, deferred := k.bounded(k.without)
	for seq := uint64(1); seq < 3; seq++ {
		require.Equal(t, inbound.Nak, h.Handle(t.Context(), k.message(seq, 1)).Do)
	}
	deferred.err = errors.New("no answer")
	require.Equal(t, inbound.Leave, h.Handle(t.Context(), k.message(3, 1)).Do)
	deferred.err = nil
	lost := k.message(3, 2)
	lost.Fresh = func() bool { return len(deferred.all) < 2 }
	require.Equal(t, inbound.Leave, h.Handle(t.Context(), lost).Do)
	require.Equal(t, inbound.Ack, h.Handle(t.Context(), k.message(3, 3)).Do)
	require.Equal(t, deferred.all[0].ID, deferred.all[2].ID, "the last one replaces those before")
}

// TestDeferredMessageKeepsItsAge: the binding grace and the greatest age count from its first
// time. Headers make no message younger, and no nonsense in them does harm.
func TestDeferredMessageKeepsItsAge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deferred, count string
		code            events.Code // "" if it still waits
	}{
		"young":              {time.Now().Format(time.RFC3339Nano), "1", ""},
		"past the grace":     {time.Now().Add(-time.Minute).Format(time.RFC3339Nano), "4", events.CodeNoBinding},
		"past, offered once": {time.Now().Add(-time.Minute).Format(time.RFC3339Nano), "1", ""},
		"past the age":       {time.Now().Add(-2 * time.Hour).Format(time.RFC3339Nano), "1", events.CodeTooOld},
		"of tomorrow":        {time.Now().Add(24 * time.Hour).Format(time.RFC3339Nano), "-3", ""},
		"no time":            {"yesterday", "99999999999999999999", ""},
		"no number":          {time.Now().Add(-time.Minute).Format(time.RFC3339Nano), "99999999999999999999", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			h, _ := k.bounded(k.without)
			m := k.message(1, 1)
			m.Header = nats.Header{deferral.HeaderDeferred: {c.deferred}, deferral.HeaderDeferrals: {c.count}, deferral.HeaderOffers: {c.count}}
			d := h.Handle(t.Context(), m)
			if c.code == "" {
				require.Equal(t, inbound.Nak, d.Do)
				return
			}
			require.Equal(t, inbound.Ack, d.Do)
			require.Equal(t, c.code, k.response().Code)
		})
	}
}

// TestDeferredClaimedTurnContinuesWithItsCopy: the message that held the turn is gone, so the copy
// takes it over as a resume does; not while the lease is in the stream, and not twice.
func TestDeferredClaimedTurnContinuesWithItsCopy(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]bool{"gone": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			k.orphaned("idempotent")
			k.LeaseHeld = func(context.Context, idempotency.Lease) (bool, error) { return held, nil }
			h, deferred := k.bounded(k.without, func(c *handlers.Config) { c.BindingGrace = -1 })
			for i := range uint64(2) {
				require.Equal(t, inbound.Nak, h.Handle(t.Context(), k.message(1, i+2)).Do, "a lease keeps its place while there is one")
			}
			require.Equal(t, inbound.Ack, h.Handle(t.Context(), k.message(1, 4)).Do)
			require.Len(t, deferred.all, 1)
			entered := 0
			next := k.Config
			next.Tool = func(*bindings.Binding) (tools.Invoker, error) {
				return toolFunc(func(_ context.Context, c *tools.Call) (tools.Result, error) {
					entered++
					require.Equal(t, map[string]any{"as": "claimed"}, c.Args)
					return tools.Result{}, nil
				}), nil
			}
			worker := handlers.New(next)
			for i := range 2 {
				require.Equal(t, inbound.Ack, worker.Handle(t.Context(), k.again(deferred.all[0], uint64(7+i))).Do)
			}
			if held {
				require.Zero(t, entered)
				return
			}
			require.Equal(t, 1, entered)
			require.True(t, k.response().Success)
		})
	}
}

// TestMessageThatMayBeALeaseKeepsItsPlaceForAMinuteAtMost: however old it is. Places are counted by a process,
// so those that it has taken have to be free soon after it has ended. That also holds for what cannot be
// deferred.
func TestMessageThatMayBeALeaseKeepsItsPlaceForAMinuteAtMost(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]struct{ large, full bool }{
		"place": {},
		"beyond the budget, and too large to be deferred": {large: true},
		"beyond the budget, and no room to be deferred":   {full: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			k.orphaned("idempotent")
			h, deferred := k.bounded(k.without, func(c *handlers.Config) {
				c.MaxEventAge, c.MaxTurnLife = 30*24*time.Hour, 7*24*time.Hour
				c.DeferralQuota = func(context.Context, string, int) (bool, error) { return !why.full, nil }
			})
			if why.large {
				deferred.err = idempotency.ErrRefused
			}
			for i := range uint64(3) {
				m := k.message(1, 60+i)
				m.Stored = time.Now().Add(-4 * 24 * time.Hour)
				d := h.Handle(t.Context(), m)
				if i == 2 && !why.large && !why.full {
					require.Equal(t, inbound.Ack, d.Do)
					require.True(t, deferred.all[0].At.After(time.Now().Add(20*time.Hour)))
					break
				}
				require.Equal(t, inbound.Nak, d.Do)
				require.Positive(t, d.Delay)
				require.LessOrEqual(t, d.Delay, time.Minute)
			}
		})
	}
}

// TestResumeBeyondTheBudgetIsLeftToTheNextSweep: the journal has the turn, so nothing is deferred.
func TestResumeBeyondTheBudgetIsLeftToTheNextSweep(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.orphaned("idempotent")
	resume := k.takeoverMessages()["a resume"]
	h, deferred := k.bounded(k.without)
	for i := range uint64(3) {
		d := h.Handle(t.Context(), resume(i+1))
		require.Equal(t, i < 2, d.Do == inbound.Nak)
		require.Equal(t, i == 2, d.Do == inbound.Ack)
	}
	require.Empty(t, deferred.all)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), resume(9)).Do)
	require.True(t, k.response().Success)
}

// TestDeferredMessageIsDeliveredAgain: on a real server, with its body and the headers that are its
// sender's, none that the server would obey, and though its message id was seen just now.
func TestDeferredMessageIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	in, err := k.js.Stream(t.Context(), k.space.InStream())
	require.NoError(t, err)
	timers, err := k.js.Stream(t.Context(), k.space.TimersStream())
	require.NoError(t, err)
	m := k.message(1, 1)
	_, err = k.js.PublishMsg(t.Context(), &nats.Msg{Subject: m.Subject, Data: m.Data, Header: nats.Header{nats.MsgIdHdr: {"id"}}})
	require.NoError(t, err)
	put := deferral.Publisher(k.js, k.space)
	h, _ := k.bounded(k.without, func(c *handlers.Config) {
		c.MaxAckPending, c.BindingGrace = 1, 300*time.Millisecond
		c.Defer = func(ctx context.Context, d deferral.Message) error {
			d.At = time.Now() // the test does not wait
			return put(ctx, d)
		}
	})
	require.Equal(t, inbound.Nak, h.Handle(t.Context(), k.message(2, 1)).Do)
	m.Header = nats.Header{
		nats.MsgIdHdr: {"id"}, "Nats-Rollup": {"all"}, "Nats-Expected-Last-Sequence": {"77"}, "nats-ttl": {"1s"}, "traceparent": {"trace"},
		subjects.HeaderReply: {"_INBOX.x"},
	}
	require.Equal(t, inbound.Ack, h.Handle(t.Context(), m).Do)
	due := k.dueNow(t, "oneturn.due.in.default.structured_output_ready.app.WF.chat")
	require.EqualValues(t, 1, messages(t, timers), "the schedule is over")
	worker := k.timers()
	for range 2 { // the first one's acknowledgement got lost
		require.Equal(t, inbound.Ack, worker.Handle(t.Context(), due).Do)
	}
	require.EqualValues(t, 2, messages(t, in))
	got, err := in.GetLastMsgForSubject(t.Context(), m.Subject)
	require.NoError(t, err)
	require.JSONEq(t, string(m.Data), string(got.Data))
	require.Equal(t, m.Stored.UTC().Format(time.RFC3339Nano), got.Header.Get(deferral.HeaderDeferred))
	require.Equal(t, "id", got.Header.Get(deferral.HeaderMsgID))
	require.Equal(t, "trace", got.Header.Get("traceparent"))
	require.Equal(t, "_INBOX.x", got.Header.Get(subjects.HeaderReply))
	for name := range got.Header {
		require.NotContains(t, []string{"Nats-Rollup", "Nats-Expected-Last-Sequence", "nats-ttl", "Nats-Schedule", "Nats-Scheduler", "Nats-Schedule-Next"}, name)
	}
}

// dueNow is the delivery of what is due on a subject.
func (k *kit) dueNow(t *testing.T, subject string) *inbound.Message {
	t.Helper()
	timers, err := k.js.Stream(t.Context(), k.space.TimersStream())
	require.NoError(t, err)
	var due *inbound.Message
	require.Eventually(t, func() bool {
		m, err := timers.GetLastMsgForSubject(t.Context(), subject)
		if err != nil {
			return false
		}
		due = &inbound.Message{
			Subject: m.Subject, Header: m.Header, Data: m.Data, Stored: m.Time, Held: t.Context(), Fresh: func() bool { return true },
			Lease: idempotency.Lease{Stream: k.space.TimersStream(), Seq: m.Sequence, Delivery: 1},
		}
		return true
	}, 20*time.Second, 10*time.Millisecond)
	return due
}

// TestMessageThatIsTooLargeToDeferKeepsItsPlace: nothing of it is lost.
func TestMessageThatIsTooLargeToDeferKeepsItsPlace(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	d := deferral.Message{Subject: k.message(1, 1).Subject, ID: "x", At: time.Now(), Data: make([]byte, 1<<20)}
	require.ErrorIs(t, deferral.Publisher(k.js, k.space)(t.Context(), d), events.ErrTooLarge)
	d.Subject = "oneturn.in.default.expire.*.WF.chat"
	require.ErrorIs(t, deferral.Publisher(k.js, k.space)(t.Context(), d), idempotency.ErrRefused)
}
