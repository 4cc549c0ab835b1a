package inbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestArrivalIsYoungerThanAPingOnlyBehindItsAnswer(t *testing.T) {
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
