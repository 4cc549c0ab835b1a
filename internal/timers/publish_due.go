package timers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// firstRetry is the first delay of what another worker is to do, and of what cannot be done now.
const firstRetry = 50 * time.Millisecond

// backoff is a delay that doubles with each delivery of a message, up to half a minute.
func backoff(m *inbound.Message, first time.Duration) time.Duration {
	const doublings, longest = 10, 30 * time.Second
	return min(first<<min(max(m.Lease.Delivery, 1)-1, doublings), longest)
}

// This file publishes what is due into the inbound stream: the expiry of a question (expire), and a message that was
// deferred (again). Both end in passOn, which acknowledges the schedule's message once the other one is stored; its
// message id makes repeats duplicates.

// expire passes the end of the time for an answer to the workers of the question's pool, which
// decide the outcome: here it is not known whether the tool can run. The message is
// acknowledged when theirs is stored, and theirs is stored once.
func (t *Timers) expire(ctx context.Context, m *inbound.Message, key subjects.Key, ask string) inbound.Disposition {
	body, err := events.Parse(m.Data)
	if err != nil {
		return t.dead(m, deadletter.ReasonUndecodable, err)
	}
	e, err := body.Expire()
	switch {
	case err != nil:
		return t.dead(m, deadletter.DecodeReason(err), err)
	case e.Key != key.String() || subjects.Token(e.Ask) != ask || e.Forced:
		return t.dead(m, deadletter.ReasonSubjectMismatch, fmt.Errorf("the end of question %.200q of call %.300q is not due on subject %.300q", e.Ask, e.Key, m.Subject))
	}
	subject, ok := t.Sweep.Space.InOf(subjects.Inbound{
		Pool: cmp.Or(e.Pool, subjects.DefaultPool), Kind: events.KindExpire, App: key.App, Workflow: subjects.Token(e.Workflow), Chat: key.Chat,
	})
	if !ok {
		return t.dead(m, deadletter.ReasonSubjectMismatch, fmt.Errorf("invalid pool %.80q", e.Pool))
	}
	return t.passOn(ctx, m, &nats.Msg{Subject: subject, Header: nats.Header{}, Data: m.Data})
}

// timerBatch is how far apart the server looks for schedules that are due: what is due in between comes
// at the same moment.
const timerBatch = 250 * time.Millisecond

// again publishes a deferred message on its inbound subject. Messages that are due at the same moment
// are spread over the time until the next ones are: running turns would have to wait for all of them.
func (t *Timers) again(ctx context.Context, m *inbound.Message, subject string) inbound.Disposition {
	if m.Slot != nil {
		m.Slot.Release()
		defer m.Slot.Reacquire()
	}
	wait := time.NewTimer(deferral.Spread(m.Lease.Seq, timerBatch))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-m.Held.Done():
		return inbound.Left()
	case <-ctx.Done():
		return inbound.NakAfter(0) // another worker publishes it
	}
	return t.passOn(ctx, m, &nats.Msg{Subject: subject, Header: inbound.SenderHeaders(m.Header), Data: m.Data})
}

// passOn publishes what is due into the inbound stream, and acknowledges it when it is stored there.
func (t *Timers) passOn(ctx context.Context, due *inbound.Message, in *nats.Msg) inbound.Disposition {
	in.Header.Set(nats.MsgIdHdr, idOf(due))
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	if _, err := t.Sweep.JS.PublishMsg(ctx, in); err != nil {
		if errors.Is(err, context.Canceled) {
			return inbound.NakAfter(0) // the worker stops
		}
		if due.Lease.Delivery <= 1 {
			t.logThrottled(due, slog.LevelWarn, "a message that is due could not be published; it will be redelivered", "", "subject", throttle.Cut(in.Subject), "err", events.LogText(err))
		}
		return inbound.NakAfter(backoff(due, firstRetry))
	}
	return inbound.Acked()
}

// idOf is the message id of what is published for a message that is due: one for each of those, so that
// only repeats of the same one are dropped as duplicates. What is scheduled again has to arrive
// again.
func idOf(due *inbound.Message) string {
	of := due.Origin()
	sum := sha256.Sum256(events.JoinIDs("due", due.Subject, of))
	const chars = 22
	return base64.RawURLEncoding.EncodeToString(sum[:])[:chars]
}
