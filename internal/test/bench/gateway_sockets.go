package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The clients of a gateway are as cheap as they can be, because they share the cores with what is measured: they read large
// pieces of a connection and look for the mark that the publisher has put into each event.

// Endpoints that clients use.
const (
	endpointSocket = "ws"   // a WebSocket
	endpointAGUI   = "agui" // a connect of AG-UI
)

// connectTime bounds the time until a client has its first event.
const connectTime = time.Minute

// client is a connection of a frontend to one chat.
type client struct {
	of       *frontends
	conn     net.Conn
	in       *bufio.Reader
	endpoint string

	next    int // number of the live event that has to come next
	ready   bool
	latency []time.Duration
}

// dial connects a client. Ports of one address are not enough for many connections, one after the other, so there are several.
func (f *frontends) dial(ctx context.Context, n int, r *frontendRequest) (*client, error) {
	const addresses = 8
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+n%addresses))}}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", r.Address)
	if err != nil {
		return nil, fmt.Errorf("connect client %d: %w", n, err)
	}
	c := &client{of: f, conn: conn, in: bufio.NewReader(conn), endpoint: r.Endpoint}
	if err := c.ask(r, tenantOf(n, r.Tenants), chatOf(r.Chat, n, r.Chats)); err != nil {
		return nil, errors.Join(fmt.Errorf("client %d: %w", n, err), conn.Close())
	}
	return c, nil
}

// chatOf is the chat of a client, where clients are spread over several.
func chatOf(chat string, n, chats int) string { return chat + "-" + strconv.Itoa(n%max(chats, 1)) }

// tenantOf is the tenant of a client, where clients are spread over several: each may have the server search only so much.
func tenantOf(n, tenants int) string { return app + "-" + strconv.Itoa(n%max(tenants, 1)) }

// ask sends the request of a client and reads the header of the reply.
func (c *client) ask(r *frontendRequest, tenant, chat string) error {
	if err := c.conn.SetDeadline(time.Now().Add(connectTime)); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	text := "GET /ws/" + workflow + "/" + tenant + "/" + chat + "/" + frontendUser + " HTTP/1.1\r\nHost: " + r.Address +
		"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	want := http.StatusSwitchingProtocols
	if c.endpoint == endpointAGUI {
		body := `{"threadId":"` + chat + `","runId":"run-` + strconv.FormatInt(time.Now().UnixNano(), 36) + `","state":{},"messages":[],"tools":[],"context":[],"forwardedProps":{}}`
		text = "POST /agui/" + workflow + "/connect HTTP/1.1\r\nHost: " + r.Address + "\r\nX-App-Id: " + tenant +
			"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
		want = http.StatusOK
	}
	if _, err := io.WriteString(c.conn, text); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	status, err := c.in.ReadString('\n')
	for line := status; err == nil && line != "\r\n"; {
		line, err = c.in.ReadString('\n')
	}
	if err != nil {
		return fmt.Errorf("read the header: %w", err)
	}
	if code := strings.Fields(status); len(code) < 2 || code[1] != strconv.Itoa(want) {
		return fmt.Errorf("the server replied %q, want %d", strings.TrimSpace(status), want)
	}
	return nil
}

// read reads until the connection ends or done returns true.
func (c *client) read(done func() bool) error {
	for !done() {
		var err error
		if c.endpoint == endpointAGUI {
			err = c.readLine()
		} else {
			err = c.readFrame()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readLine reads a line of server-sent events: all events of these runs are shorter than a chunk of the reply.
func (c *client) readLine() error {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if bytes.HasPrefix(line, []byte("data: ")) {
		return c.event(line)
	}
	return nil
}

// Parts of a frame of a WebSocket.
const (
	opClose  = 0x8
	opPing   = 0x9
	opPong   = 0xA
	finBit   = 0x80
	maskBit  = 0x80
	length16 = 126
	length64 = 127
)

// readFrame reads a frame of a server: it has no mask, and is one message.
func (c *client) readFrame() error {
	header, err := c.in.Peek(2)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	op, size, skip := header[0]&0xF, int(header[1]), 2
	switch size {
	case length16:
		if header, err = c.in.Peek(4); err == nil {
			size, skip = int(binary.BigEndian.Uint16(header[2:])), 4
		}
	case length64:
		err = errors.New("a frame is larger than any event of this benchmark")
	}
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	frame, err := c.in.Peek(skip + size)
	if err != nil {
		return fmt.Errorf("read a frame of %d bytes: %w", size, err)
	}
	body := frame[skip:]
	switch op {
	case opPing: // a mask of zeros changes nothing
		_, err = c.conn.Write(append([]byte{finBit | opPong, maskBit | byte(size), 0, 0, 0, 0}, body...))
	case opClose:
		err = fmt.Errorf("the server closed the WebSocket: %q", body)
	default:
		err = c.event(body)
	}
	_, _ = c.in.Discard(skip + size) // it was peeked
	return err
}

// Types of the events after which a client is live.
const (
	boundaryType = "chat.resume_boundary"
	startedType  = "RUN_STARTED"
)

// event takes an event: the first live one has to have the number 0, and so on.
func (c *client) event(data []byte) error {
	n, sent, ok := markOf(data)
	if !ok {
		c.ready = c.ready || bytes.Contains(data, []byte(boundaryType)) || bytes.Contains(data, []byte(startedType))
		return nil
	}
	if sent == 0 {
		return nil // of the history
	}
	if n != c.next {
		return fmt.Errorf("event %d came, want %d", n, c.next)
	}
	c.next++
	return c.of.took(c, n, sent)
}

// markOf returns what the publisher has put into an event: its number, and when it was published.
func markOf(data []byte) (n int, sent int64, ok bool) {
	_, rest, ok := bytes.Cut(data, []byte("@@"))
	if !ok {
		return 0, 0, false
	}
	number, rest, _ := bytes.Cut(rest, []byte(" "))
	at, _, ok := bytes.Cut(rest, []byte("@@"))
	return int(digits(number)), digits(at), ok
}

func digits(text []byte) (n int64) {
	for _, d := range text {
		n = 10*n + int64(d-'0')
	}
	return n
}

// mark is what the publisher puts into an event; one of the history has no time.
func mark(n int, sent int64) string {
	return "@@" + strconv.Itoa(n) + " " + strconv.FormatInt(sent, 10) + "@@"
}
