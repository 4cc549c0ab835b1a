package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// share is how many of the eight places for retries one tenant gets.
const share = 4

// repairedByRetry are tools of which the second one fails, but not in a retry.
var repairedByRetry = map[string]toolFunc{"one": echo, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
	if strings.Contains(call.CallID, "retry") {
		return echo(ctx, call)
	}
	return tools.Result{}, errBroken
}}

// placesKit has turns of several tenants, by number, and their retries.
type placesKit struct {
	*programKit

	seq uint64
}

// of is the first delivery of a turn, or of its retry.
func (k *placesKit) of(kind, app string, n int) *inbound.Message {
	k.t.Helper()
	k.seq++
	id := events.TurnID{App: app, Chat: "chat", Turn: fmt.Sprintf("t%d", n)}
	e := &events.StructuredOutputReady{TurnID: id, Workflow: "WF", Agent: "A", AutoToolMode: true}
	if kind == events.KindRetry {
		id.Turn = events.RetryKey(id.Turn)
		e = events.NewRetry(id, "WF", fmt.Sprintf("t%d", n), nil)
	} else {
		data, err := events.Decode([]byte(threeCalls))
		require.NoError(k.t, err)
		e.Data = data
	}
	body, err := events.EncodeTurn(e, time.Now())
	require.NoError(k.t, err)
	m := k.message(k.seq, 1)
	m.Subject, m.Data = k.space.In("default", kind, app, "WF", "chat"), body
	return m
}

// ended reports whether a retry has succeeded.
func (k *placesKit) ended(app string, n int) bool {
	k.t.Helper()
	r, err := k.store.Last(k.t.Context(), subjects.TurnKey(app, "chat", "", fmt.Sprintf("t%d~retry1", n)).Public("tool_response"))
	if err != nil {
		return false
	}
	response, err := events.ReadResponse(r.Data)
	require.NoError(k.t, err)
	return response.Success
}

// fill has a tenant retry its first turns, which hold their places until the function that it returns is called.
func (k *placesKit) fill(app string, retries int) (read func()) {
	k.t.Helper()
	reading, open := make(chan struct{}), make(chan struct{})
	left := atomic.Int32{}
	left.Store(int32(retries))
	set := k.Bindings()
	k.Bindings = func() *bindings.Set { // the first that are asked for have read a turn, and hold its results
		if left.Add(-1) >= 0 {
			reading <- struct{}{}
			<-open
		}
		return set
	}
	over := make(chan inbound.Disposition, retries)
	for n := range retries {
		m := k.of(events.KindRetry, app, n)
		go func() { over <- k.Handle(k.t.Context(), m) }()
	}
	for range retries {
		<-reading
	}
	return func() {
		close(open)
		for range retries {
			require.Equal(k.t, inbound.Ack, (<-over).Do)
		}
	}
}

// TestRetriesOfATenantLeavePlacesToOthers: what a retry reads takes memory, so each tenant has a share of the reads.
func TestRetriesOfATenantLeavePlacesToOthers(t *testing.T) {
	t.Parallel()
	k := &placesKit{programKit: newProgramKit(t, repairedByRetry)}
	for n := range share + 2 {
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.of(events.KindStructuredOutputReady, "flood", n)).Do)
	}
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.of(events.KindStructuredOutputReady, "other", 0)).Do)
	read := k.fill("flood", share)
	late := k.of(events.KindRetry, "flood", share)
	d := k.Handle(t.Context(), late)
	require.Equal(t, inbound.Nak, d.Do, "the tenant has its share")
	require.Positive(t, d.Delay)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.of(events.KindRetry, "other", 0)).Do)
	require.True(t, k.ended("other", 0), "another tenant has places")

	read()
	again := *late
	again.Lease.Delivery = 2
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), &again).Do)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.of(events.KindRetry, "flood", share+1)).Do)
	for n := range share + 2 {
		require.True(t, k.ended("flood", n), n)
	}
}

// TestRetryThatIsContinuedWaitsForAPlace: the turn is claimed, so that a requeue would count as a takeover.
func TestRetryThatIsContinuedWaitsForAPlace(t *testing.T) {
	t.Parallel()
	for name, resumed := range map[string]bool{"by its own message": false, "by a sweep": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &placesKit{programKit: newProgramKit(t, repairedByRetry)}
			k.LeaseHeld = func(context.Context, idempotency.Lease) (bool, error) { return false, nil }
			for n := range share + 1 {
				require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.of(events.KindStructuredOutputReady, "flood", n)).Do)
			}
			set := k.Bindings
			k.stopAfterClaim()
			m := k.of(events.KindRetry, "flood", share)
			require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
			k.Bindings = set
			read := k.fill("flood", share)
			if resumed {
				id := events.TurnID{App: "flood", Chat: "chat", Turn: events.RetryKey(fmt.Sprintf("t%d", share))}
				body, err := events.EncodeResume(&events.Resume{TurnID: id, Workflow: "WF"}, time.Now())
				require.NoError(t, err)
				m = k.message(99, 0)
				m.Subject, m.Data = k.space.In("default", events.KindResume, "flood", "WF", "chat"), body
			}
			find, found := k.Tool, atomic.Int32{}
			k.Tool = func(b *bindings.Binding) (tools.Invoker, error) {
				found.Add(1)
				return find(b)
			}
			waiting, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer stop()
			m.Lease.Delivery++
			require.Equal(t, inbound.Leave, k.Handle(waiting, m).Do, "the tenant has its share")
			require.False(t, k.ended("flood", share))
			require.Zero(t, found.Load(), "no turn is read without a place")

			over, again := make(chan inbound.Disposition, 1), *m
			again.Lease.Delivery++
			go func() { over <- k.Handle(t.Context(), &again) }()
			read()
			require.Equal(t, inbound.Ack, (<-over).Do)
			require.True(t, k.ended("flood", share))
		})
	}
}
