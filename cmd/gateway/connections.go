package main

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A connection costs memory and a file descriptor before it has sent anything. So their number is bounded, and one too many gets a
// reply with the reason. What the kernel keeps of each for its client is bounded too.

// sendBuffer is how many bytes the kernel keeps for a client that has not read them; Linux uses twice as many, for itself as well. It
// would take megabytes, and reports progress when a third of them is free: a slow but steady client would look like one that reads nothing.
const sendBuffer = 256 << 10

// pacedListener bounds the send buffers of its connections.
type pacedListener struct{ net.Listener }

// Accept implements [net.Listener].
func (l pacedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if sized, ok := conn.(interface{ SetWriteBuffer(bytes int) error }); ok && err == nil {
		_ = sized.SetWriteBuffer(sendBuffer) // fails only if the connection has ended, which the next read reports
	}
	return conn, err //nolint:wrapcheck // it stands in for the listener
}

// limitedListener takes a bounded number of connections.
type limitedListener struct {
	net.Listener

	most    int64
	open    atomic.Int64
	refused chan struct{} // holds one for each refusal whose client may still read it
}

const (
	refusals    = 100 // that clients have time to read, at the same time
	refusalTime = time.Second
)

// limit returns a listener with at most so many open connections; 0 for no limit.
func limit(l net.Listener, most int) net.Listener {
	if most <= 0 {
		return l
	}
	return &limitedListener{Listener: l, most: int64(most), refused: make(chan struct{}, refusals)}
}

// Accept implements [net.Listener].
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // it stands in for the listener
		}
		if l.open.Add(1) <= l.most {
			return &limitedConn{Conn: conn, free: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.refuse(conn)
	}
}

// refuse replies to whatever the client sends, and closes the connection.
func (l *limitedListener) refuse(conn net.Conn) {
	select {
	case l.refused <- struct{}{}:
	default:
		_ = conn.Close() // too many for a reply
		return
	}
	go func() { // ends within refusalTime
		defer func() { <-l.refused }()
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(refusalTime))
		if _, err := io.WriteString(conn, refusalText()); err != nil {
			return
		}
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // a connection that is closed with a request unread loses the reply
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, 64<<10))
	}()
}

func refusalText() string {
	const body = `{"status":503,"code":"unavailable","message":"the gateway has too many open connections: try again"}`
	return fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\nCache-Control: no-store\r\n"+
		"X-Content-Type-Options: nosniff\r\nRetry-After: 5\r\nConnection: close\r\n\r\n%s", len(body), body)
}

// limitedConn counts until it is closed.
type limitedConn struct {
	net.Conn

	free func()
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	c.free()
	return c.Conn.Close() //nolint:wrapcheck // it stands in for the connection
}
