package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/config"
)

// unread counts what a handler can write for a client that reads nothing.
func unread(t *testing.T, maxConnections int) int {
	t.Helper()
	public, err := listen("127.0.0.1:0")
	require.NoError(t, err)
	written := make(chan int, 1)
	endless := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		const patience = 200 * time.Millisecond
		for total := 0; ; {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
			n, err := w.Write(make([]byte, 32<<10))
			if total += n; err != nil || total > 64<<20 {
				written <- total
				return
			}
		}
	})
	public.serve(endless, &config.Gateway{MaxConnections: maxConnections}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { public.shutdown(t.Context()) })
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", public.listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	tcp, ok := conn.(*net.TCPConn)
	require.True(t, ok)
	require.NoError(t, tcp.SetReadBuffer(32<<10))
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	return <-written
}

// With megabytes for each client the kernel would need gigabytes for all, and a gateway would not see that a slow client reads.
func TestKernelKeepsLittleForAClientThatReadsNothing(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 10} {
		require.Less(t, unread(t, most), 4*sendBuffer, "of at most %d connections", most)
	}
}
