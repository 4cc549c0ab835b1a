package handlers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/inbound"
)

// overloaded is a worker with two places, which two messages have taken for some milliseconds, and a third one that was
// deferred.
type overloaded struct {
	*kit

	h        *handlers.Handlers
	deferred *deferred
	now      time.Time
	room     bool
}

func newOverloaded(t *testing.T, grace time.Duration) *overloaded {
	t.Helper()
	c := &overloaded{kit: newKit(t, toolFunc(nothing)), now: time.Now(), room: true}
	c.h, c.deferred = c.bounded(c.without, func(o *handlers.Config) {
		o.Now, o.ServerTime, o.BindingGrace = func() time.Time { return c.now }, nil, grace
		o.DeferralQuota = func(context.Context, string, int) (bool, error) { return c.room, nil }
	})
	for seq := range uint64(3) {
		c.h.Handle(t.Context(), c.message(1+seq, 1))
	}
	require.Len(t, c.deferred.all, 1)
	return c
}

// returns has what was deferred last come again.
func (c *overloaded) returns(seq uint64) inbound.Disposition {
	m := c.again(c.deferred.all[len(c.deferred.all)-1], seq)
	m.Stored = c.now
	return c.h.Handle(c.t.Context(), m)
}

func TestInAnOverloadDeferredMessagesAreDeferredAgainAtTheirFirstDelivery(t *testing.T) {
	t.Parallel()
	c := newOverloaded(t, time.Hour)
	require.Equal(t, inbound.Ack, c.returns(10).Do)
	require.Len(t, c.deferred.all, 2)
}

func TestOverloadEndsWhenThePlacesOfItsTenantAreFreeAgain(t *testing.T) {
	t.Parallel()
	c := newOverloaded(t, time.Hour)
	c.now = c.now.Add(10 * time.Minute)
	require.Equal(t, inbound.Nak, c.returns(10).Do)
	c.now, c.room = c.now.Add(10*time.Minute), false
	require.Equal(t, inbound.Nak, c.returns(11).Do, "no room is needed where places are free")
	require.Len(t, c.deferred.all, 1)
}

// The server counts deliveries, not failed claims.
func TestTurnOfAnUnknownWorkflowWaitsForItsGraceHoweverLongItIs(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{30 * time.Second, 5 * time.Minute, 20 * time.Minute} {
		t.Run(grace.String(), func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			began := time.Now()
			now := began
			h, _ := k.bounded(k.without, func(c *handlers.Config) {
				c.Now, c.ServerTime, c.BindingGrace = func() time.Time { return now }, nil, grace
			})
			for delivery := uint64(1); ; delivery++ {
				d := h.Handle(t.Context(), k.message(1, delivery))
				if d.Do == inbound.Ack {
					break
				}
				require.Equal(t, inbound.Nak, d.Do)
				now = now.Add(d.Delay)
			}
			require.GreaterOrEqual(t, now.Sub(began), grace)
			require.Equal(t, events.CodeNoBinding, k.response().Code)
			require.Empty(t, k.deadReasons())
		})
	}
}
