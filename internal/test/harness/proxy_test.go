package harness_test

import (
	"bytes"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
)

// echo serves connections that get back what they send.
func echo(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // ends with the connection
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *harness.Proxy) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

// roundtrip sends data and returns how long the echo took.
func roundtrip(t *testing.T, c net.Conn, data string) time.Duration {
	t.Helper()
	start := time.Now()
	_, err := c.Write([]byte(data))
	require.NoError(t, err)
	back := make([]byte, len(data))
	_, err = io.ReadFull(c, back)
	require.NoError(t, err)
	require.Equal(t, data, string(back))
	return time.Since(start)
}

func TestProxyPassesLargeDataUnchanged(t *testing.T) {
	t.Parallel()
	c := dial(t, harness.NewProxy(t, echo(t)))
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	go func() { _, _ = c.Write(data) }()
	back := make([]byte, len(data))
	_, err := io.ReadFull(c, back)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, back))
}

func TestProxyCutEndsConnectionsInOrderAndTakesNewOnes(t *testing.T) {
	t.Parallel()
	p := harness.NewProxy(t, echo(t))
	c := dial(t, p)
	roundtrip(t, c, "a")
	require.Equal(t, 1, p.Connections())
	p.Cut()
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	roundtrip(t, dial(t, p), "b")
}

func TestProxyResetIsAnErrorForThePeer(t *testing.T) {
	t.Parallel()
	p := harness.NewProxy(t, echo(t))
	c := dial(t, p)
	roundtrip(t, c, "a")
	p.Reset()
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestProxyRefuseEndsNewConnectionsOnly(t *testing.T) {
	t.Parallel()
	p := harness.NewProxy(t, echo(t))
	old := dial(t, p)
	roundtrip(t, old, "a")
	p.Refuse(true)
	_, err := dial(t, p).Read(make([]byte, 1))
	require.Error(t, err)
	roundtrip(t, old, "b")
	p.Heal()
	roundtrip(t, dial(t, p), "c")
}

func TestProxyStallIsSilentInOneDirectionAndLosesNothing(t *testing.T) {
	t.Parallel()
	for _, d := range []harness.Direction{harness.Up, harness.Down} {
		p := harness.NewProxy(t, echo(t))
		c := dial(t, p)
		roundtrip(t, c, "a")
		p.Stall(d)
		_, err := c.Write([]byte("b"))
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
		_, err = c.Read(make([]byte, 1))
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())
		p.Heal()
		require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
		back := make([]byte, 1)
		_, err = io.ReadFull(c, back)
		require.NoError(t, err)
		require.Equal(t, "b", string(back))
	}
}

func TestProxyCutFreesAStalledConnection(t *testing.T) {
	t.Parallel()
	p := harness.NewProxy(t, echo(t))
	c := dial(t, p)
	roundtrip(t, c, "a")
	p.Stall(harness.Down)
	_, err := c.Write([]byte("b"))
	require.NoError(t, err)
	p.Cut()
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestProxyDelayHoldsBothDirections(t *testing.T) {
	t.Parallel()
	p := harness.NewProxy(t, echo(t))
	c := dial(t, p)
	p.Delay(100 * time.Millisecond)
	require.GreaterOrEqual(t, roundtrip(t, c, "a"), 200*time.Millisecond)
	p.Heal()
	roundtrip(t, c, "b")
}

func TestProxyCutAfterStrikesOnceInTheMiddle(t *testing.T) {
	t.Parallel()
	p := harness.NewProxy(t, echo(t))
	c := dial(t, p)
	p.CutAfter(harness.Down, 3)
	_, err := c.Write([]byte("abcdef"))
	require.NoError(t, err)
	back, err := io.ReadAll(c)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.LessOrEqual(t, len(back), 3, "a reset may also throw away what was on its way")
	roundtrip(t, dial(t, p), "abcdef")
}

func TestProxyLimitHoldsTheRateOfAllConnections(t *testing.T) {
	t.Parallel()
	p := harness.NewProxy(t, echo(t))
	p.Limit(10_000)
	data := string(bytes.Repeat([]byte("x"), 1_000))
	start := time.Now()
	roundtrip(t, dial(t, p), data)
	roundtrip(t, dial(t, p), data)
	require.GreaterOrEqual(t, time.Since(start), 300*time.Millisecond, "4 times 100 ms, of which two may run at the same time")
	p.Heal()
	require.Less(t, roundtrip(t, dial(t, p), data), 90*time.Millisecond)
}
