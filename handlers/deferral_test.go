package handlers_test

import (
	"bytes"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/timers"
	"github.com/oneturn/oneturn/subjects"
)

// around publishes what was deferred as the workers' timers do, and returns what the inbound stream has then.
func (k *kit) around(timers *timers.Timers, d deferral.Message) nats.Header {
	k.t.Helper()
	d.At = time.Now()
	require.NoError(k.t, deferral.Publisher(k.js, k.space)(k.t.Context(), d))
	_, due, ok := k.space.DeferralTimer(d.Subject, d.ID)
	require.True(k.t, ok)
	require.Equal(k.t, inbound.Ack, timers.Handle(k.t.Context(), k.dueNow(k.t, due)).Do)
	stream, err := k.js.Stream(k.t.Context(), k.space.TimersStream())
	require.NoError(k.t, err)
	require.NoError(k.t, stream.Purge(k.t.Context()))
	in, err := k.js.Stream(k.t.Context(), k.space.InStream())
	require.NoError(k.t, err)
	got, err := in.GetLastMsgForSubject(k.t.Context(), d.Subject)
	require.NoError(k.t, err)
	return got.Header
}

// TestMessageWithLargeHeadersKeepsItsAge: also when it is deferred again and again, and it keeps what workers
// read of its sender's headers.
func TestMessageWithLargeHeadersKeepsItsAge(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	own := []string{deferral.HeaderDeferred, deferral.HeaderDeferrals, deferral.HeaderOffers, deferral.HeaderMsgID}
	for name, senders := range map[string]nats.Header{
		"just within the bound": {"Baggage": {strings.Repeat("x", 8000)}},
		"one over the bound":    {"Authorization": {strings.Repeat("x", 9000)}},
		"many":                  {"A": {strings.Repeat("x", 4000)}, "B": {strings.Repeat("x", 4000)}, "C": {strings.Repeat("x", 4000)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			first := time.Now()
			h, deferred := k.bounded(k.without)
			for i := range uint64(3) {
				m := k.message(2+i, 1)
				m.Stored, m.Header = first, nats.Header{subjects.HeaderReply: {"_INBOX.x"}, "traceparent": {trace}, nats.MsgIdHdr: {"id"}}
				maps.Copy(m.Header, senders)
				h.Handle(t.Context(), m)
			}
			require.Len(t, deferred.all, 1)
			timers := k.timers()
			for round := range 2 {
				header := k.around(timers, deferred.all[round])
				require.Equal(t, strconv.Itoa(round+1), header.Get(deferral.HeaderDeferrals))
				for _, name := range own {
					require.NotEmpty(t, header.Get(name), name)
				}
				require.Equal(t, first.UTC().Format(time.RFC3339Nano), header.Get(deferral.HeaderDeferred))
				require.Equal(t, "id", header.Get(deferral.HeaderMsgID))
				require.Equal(t, "_INBOX.x", header.Get(subjects.HeaderReply))
				require.Equal(t, trace, header.Get("traceparent"))
				size := 0
				for name, values := range header {
					size += len(name) + len(strings.Join(values, ""))
				}
				require.Less(t, size, 10<<10)
				m := k.again(deferred.all[round], uint64(10+round))
				m.Header = header
				require.Equal(t, inbound.Ack, h.Handle(t.Context(), m).Do)
			}
		})
	}
}

// TestHeaderMakesNoLateAnswerOneInTime: clients that may answer may write headers, but not publish on the subjects on
// which workers publish what was deferred.
func TestHeaderMakesNoLateAnswerOneInTime(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{events.KindToolCallResponse, events.KindUIToolResponse, events.KindUserInputSubmit} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			owner := k.asker("asks", "")
			owner.ask("1", over)
			m := k.answers(3, owner.question("1"), yes())
			m.Subject = k.space.In("default", kind, "app", "WF", "chat")
			m.Header.Set(deferral.HeaderDeferred, time.Now().Add(-time.Hour).Format(time.RFC3339Nano))
			m.Header.Set(deferral.HeaderDeferrals, "1")
			require.Equal(t, events.AnswerExpired, k.handled(m).Code)
		})
	}
}

// TestDeferredAnswerWaitsForAWorkerWithItsKey: a worker without keys, or without the newest, requeues it for
// as long as a turn may live, still sealed; one that no worker can open is judged immediately.
func TestDeferredAnswerWaitsForAWorkerWithItsKey(t *testing.T) {
	t.Parallel()
	parse := func(keys string) *secrets.Keys {
		ring, err := secrets.Parse([]byte(keys))
		require.NoError(t, err)
		return ring
	}
	right, other := secrets.NewKey(), secrets.NewKey()
	const life = 7 * 24 * time.Hour
	for name, ring := range map[string]*secrets.Keys{"no keys": nil, "another key": parse(other)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			owner := k.asker("asks", "")
			owner.ask("1", func(e *events.ToolCall) { e.Secret = true })
			h, deferred := k.bounded(k.without, func(c *handlers.Config) { c.SecretKeys = parse(right) })
			for i := range uint64(3) {
				h.Handle(t.Context(), k.answers(2+i, owner.question("1"), "swordfish").Message)
			}
			require.Len(t, deferred.all, 1)
			require.True(t, secrets.Sealed(deferred.all[0].Data))
			without, kept := k.bounded(func(c *handlers.Config) { c.SecretKeys, c.MaxTurnLife = ring, life })
			for i := range uint64(2) {
				require.Equal(t, inbound.Nak, without.Handle(t.Context(), k.again(deferred.all[0], 20+i)).Do)
			}
			require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, without.Handle(t.Context(), k.again(deferred.all[0], 22)).Do, "beyond the budget")
			require.Len(t, kept.all, 1)
			require.Equal(t, deferred.all[0].Data, kept.all[0].Data, "sealed once")
			require.Equal(t, deferred.all[0].Header.Get(deferral.HeaderDeferred), kept.all[0].Header.Get(deferral.HeaderDeferred))

			changed := k.again(deferred.all[0], 23)
			changed.Data = append(bytes.Clone(changed.Data), 'x')
			changed.Subject = k.space.In("default", events.KindToolCallResponse, "app", "WF", "chat")
			require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, without.Handle(t.Context(), changed).Do, "no worker has deferred it")
			old := k.again(kept.all[0], 24)
			old.Header.Set(deferral.HeaderDeferred, time.Now().Add(-life-time.Minute).Format(time.RFC3339Nano))
			require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, without.Handle(t.Context(), old).Do, "its turn is past its life")
			require.Len(t, kept.all, 1)

			with := k.Config
			with.SecretKeys = parse(other + "\n" + right)
			require.Equal(t, inbound.Erase, handlers.New(with).Handle(t.Context(), k.again(deferred.all[0], 25)).Do)
			require.Equal(t, idempotency.Answered, owner.outcome("1"))
		})
	}
}

// TestMessageOnTheSubjectOfAnotherQuestionIsRefusedAndNotKept: workflow and pool of the subject are the sender's word,
// so a worker without them does not wait for one that has them.
func TestMessageOnTheSubjectOfAnotherQuestionIsRefusedAndNotKept(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct{ pool, workflow string }{
		"another workflow": {"default", "zzz"}, "another pool": {"gpu", "WF"}, "both": {"gpu", "zzz"},
	} {
		for kind, send := range map[string]func(k *kit, a *asker, seq uint64) *mail{
			"answer": func(k *kit, a *asker, seq uint64) *mail {
				m := k.answers(seq, a.question("1"), yes(), func(r *events.ToolCallResponse) { r.Workflow = "" })
				m.Subject = k.space.In(at.pool, events.KindToolCallResponse, "app", at.workflow, "chat")
				return m
			},
			"expiry": func(k *kit, a *asker, seq uint64) *mail {
				m := k.expiry(seq, a, "1", func(e *events.Expire) { e.Pool, e.Workflow = at.pool, at.workflow })
				m.Subject = k.space.In(at.pool, events.KindExpire, "app", at.workflow, "chat")
				return m
			},
		} {
			t.Run(kind+" on "+name, func(t *testing.T) {
				t.Parallel()
				k := newKit(t, toolFunc(nothing))
				owner := k.asker("asks", "")
				owner.ask("1", over)
				h, deferred := k.bounded(k.without, func(c *handlers.Config) { c.MaxTurnLife = 7 * 24 * time.Hour })
				for i := range uint64(5) {
					m := send(k, owner, 2+i)
					m.Stored = time.Now().Add(-24 * time.Hour)
					require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, h.Handle(t.Context(), m.Message).Do)
					require.Equal(t, events.AnswerForbidden, m.result(t).Code)
				}
				require.Empty(t, deferred.all)
				require.Equal(t, idempotency.Open, owner.outcome("1"))
			})
		}
	}
}

// TestAnswerOfAnotherUserIsRefusedAndNotKept: also by a worker without the workflow.
func TestAnswerOfAnotherUserIsRefusedAndNotKept(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	owner := k.asker("asks", "")
	owner.ask("1", func(e *events.ToolCall) { e.UserID = "someone" })
	h, deferred := k.bounded(k.without)
	m := k.answers(2, owner.question("1"), yes())
	require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, h.Handle(t.Context(), m.Message).Do)
	require.Equal(t, events.AnswerForbidden, m.result(t).Code)
	require.Empty(t, deferred.all)
}
