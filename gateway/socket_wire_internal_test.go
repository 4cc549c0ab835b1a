package gateway

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// tape is a connection that keeps what is written.
type tape struct {
	net.Conn

	writes    []string
	deadlines []time.Time
	broken    error
	takes     time.Duration // of each write
}

func (c *tape) Write(b []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	<-time.After(c.takes) // in simulated time
	c.writes = append(c.writes, string(b))
	return len(b), nil
}

func (c *tape) SetWriteDeadline(t time.Time) error {
	c.deadlines = append(c.deadlines, t)
	return nil
}

func writeAll(t *testing.T, w *wire, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		n, err := w.Write([]byte(piece))
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
	}
}

func TestFramesThatFollowEachOtherTakeOneWrite(t *testing.T) {
	t.Parallel()
	conn := &tape{}
	w := &wire{Conn: conn}
	w.collect([][]byte{[]byte("aaa"), []byte("bb")})
	writeAll(t, w, "12", "aaa", "12", "bb")
	writeAll(t, w, "pong")
	w.collect([][]byte{[]byte("c")})
	writeAll(t, w, "12", "c")
	require.Equal(t, []string{"12aaa12bb", "pong", "12", "c"}, conn.writes)
	require.Len(t, conn.deadlines, 1)
	require.WithinDuration(t, time.Now().Add(writeTime), conn.deadlines[0], 10*time.Second)
}

func TestFrameBetweenCollectedOnesKeepsItsPlaceAndDelaysNone(t *testing.T) {
	t.Parallel()
	conn := &tape{}
	w := &wire{Conn: conn}
	w.collect([][]byte{[]byte("aaa"), []byte("bb")})
	writeAll(t, w, "12aaa", "ping", "12bb")
	require.Equal(t, []string{"12aaaping", "12bb"}, conn.writes)
}

// The WebSocket writes nothing after a close frame, so the rest of the batch never comes.
func TestCloseFrameBetweenCollectedOnesIsSent(t *testing.T) {
	t.Parallel()
	const closing = "\x88\x02\x03\xf0"
	for size, header := range map[int]string{1: "\x81\x01", 200: "\x81\x7e\x00\xc8", 70_000: "\x81\x7f\x00\x00\x00\x00\x00\x01\x11\x70"} {
		conn := &tape{}
		w := &wire{Conn: conn}
		first, second := strings.Repeat("\x88", size), make([]byte, 100)
		w.collect([][]byte{[]byte(first), second, second})
		writeAll(t, w, header+first[:1], first[1:])
		writeAll(t, w, "\x81\x64"+string(second))
		require.Empty(t, conn.writes, "a payload is taken for a close frame")
		writeAll(t, w, closing)
		require.True(t, strings.HasSuffix(strings.Join(conn.writes, ""), string(second)+closing), "the close frame is lost")
	}
}

func TestCollectedFramesOfABrokenConnectionFail(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	w := &wire{Conn: &tape{broken: broken}}
	w.collect([][]byte{[]byte("aaa"), []byte("bb")})
	writeAll(t, w, "12aaa")
	_, err := w.Write([]byte("12bb"))
	require.ErrorIs(t, err, broken)
}

func TestHeadersHaveTheSizesOfTheProtocol(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{0: 2, 125: 2, 126: 4, 0xFFFF: 4, 0x10000: 10} {
		require.Equal(t, want, headerOf(size), size)
	}
}

func TestSlowClientHasTimeForEachPieceOfALargeFrame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := &tape{takes: writeTime - time.Second}
		writeAll(t, &wire{Conn: conn}, strings.Repeat("x", 3*wirePiece+1))
		require.Len(t, conn.writes, 4)
		require.Len(t, conn.deadlines, 4)
		require.Equal(t, 3*conn.takes, conn.deadlines[3].Sub(conn.deadlines[0]))
	})
}
