package inbox

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

func TestArrivalIsYoungerThanAPingOnlyAfterItsAnswer(t *testing.T) {
	t.Parallel()
	const s = time.Second
	var a arrivals
	require.Zero(t, a.receive(), "nothing is known")
	a.answer(5*s, 0)
	require.Equal(t, 5*s, a.receive())
	a.answer(20*s, 2) // two were read before the answer, and have not been received
	require.Equal(t, 5*s, a.receive())
	a.answer(21*s, 1) // the first answer bounds what comes next
	require.Equal(t, 5*s, a.receive())
	require.Equal(t, 20*s, a.receive())
	a.answer(30*s, 1)
	a.answer(31*s, 0)
	require.Equal(t, 31*s, a.receive())
	a.answer(30*s, 0)
	require.Equal(t, 31*s, a.receive(), "answers that are noticed out of order")
}

func TestRedeliveryThatWasLateOnItsWayMakesARunNoOlderAndNoYounger(t *testing.T) {
	t.Parallel()
	const wait = time.Minute
	var o Ownership
	o.Receive(0)
	o.Beat(50*time.Second, 50*time.Second, wait)
	o.Receive(10 * time.Second)
	require.True(t, o.Fresh(55*time.Second, wait), "its heartbeat counts")
	require.True(t, o.Lost(2*time.Minute, wait))
	o.Receive(30 * time.Second)
	require.True(t, o.Lost(2*time.Minute, wait), "the redelivery is too old itself")
}

// farAway is a link whose server answers a ping after a time.
type farAway struct {
	now   *time.Duration
	after time.Duration
}

func (farAway) Publish(string, []byte) error                { return nil }
func (farAway) PublishRequest(string, string, []byte) error { return nil }
func (farAway) IsConnected() bool                           { return true }

func (l farAway) FlushTimeout(timeout time.Duration) error {
	*l.now += min(l.after, timeout)
	if l.after > timeout {
		return nats.ErrTimeout
	}
	return nil
}

func TestArrivalsFromAServerThatIsFarAwayStayFreshForLongerThanAnAckWait(t *testing.T) {
	t.Parallel()
	const wait = 30 * time.Second
	for _, after := range []time.Duration{time.Millisecond, 2100 * time.Millisecond, wait / 3} {
		var now time.Duration
		in := newInbox(farAway{&now, after}, "", func() time.Duration { return now }, Options{Slots: 4, AckWait: wait})
		for now < 3*wait {
			in.probe()
			now += wait / probesAWait
		}
		var own Ownership
		own.Receive(in.arrived.receive())
		require.True(t, own.Fresh(now, wait), "with an answer after %s it is taken to be %s old", after, own.age(now))
	}
}
