package gateway

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The connection below a WebSocket: it writes frames that follow each other with one system call, and has the deadline of writes,
// which as the context of each frame would cost several allocations.

// wire is the connection of a socket. The WebSocket writes one frame at a time.
type wire struct {
	net.Conn

	want  atomic.Int64 // bytes to collect before they are written
	held  *[]byte      // those that were collected, from wireBuffers
	left  int          // bytes of the frame that is being written
	renew time.Time    // when the deadline has to be set again
}

// frameHeader is the most bytes that the header of a frame of a server has.
const frameHeader = 10

//nolint:gochecknoglobals // a pool
var wireBuffers = sync.Pool{New: func() any { return new([]byte) }}

// collect makes the wire write these frames together, and a small frame that comes between them too.
func (w *wire) collect(frames [][]byte) {
	size := 0
	for _, frame := range frames {
		size += headerOf(len(frame)) + len(frame)
	}
	if len(frames) > 1 {
		w.want.Store(int64(size))
	}
}

// headerOf is the size of the header of a frame of a server.
func headerOf(size int) int {
	switch {
	case size < 126:
		return 2
	case size <= 0xFFFF:
		return 4
	}
	return frameHeader
}

// closes notes how much of a frame is written with b, and reports whether it begins a close frame. The WebSocket writes a header whole,
// and no two frames together.
func (w *wire) closes(b []byte) bool {
	if w.left > 0 || len(b) < 2 {
		w.left = max(0, w.left-len(b))
		return false
	}
	const closeFrame, opcode = 8, 0x0F
	header, size := 2, int(b[1])
	switch {
	case size == 126 && len(b) >= 4:
		header, size = 4, int(binary.BigEndian.Uint16(b[2:]))
	case size == 127 && len(b) >= frameHeader:
		header, size = frameHeader, int(binary.BigEndian.Uint64(b[2:]))
	}
	w.left = max(0, header+size-len(b))
	return b[0]&opcode == closeFrame
}

// Write implements [net.Conn].
func (w *wire) Write(b []byte) (int, error) {
	if w.closes(b) {
		w.want.Store(min(w.want.Load(), 1)) // no frame comes after it
	}
	want := int(w.want.Load())
	if want == 0 {
		return w.send(b)
	}
	if w.held == nil {
		w.held, _ = wireBuffers.Get().(*[]byte)
	}
	*w.held = append(*w.held, b...)
	if len(*w.held) < want {
		return len(b), nil
	}
	w.want.Store(0)
	_, err := w.send(*w.held)
	*w.held = (*w.held)[:0]
	if cap(*w.held) <= 2*batchBytes {
		wireBuffers.Put(w.held)
	}
	w.held = nil
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// deadlineStep is by how much a write may last longer than [writeTime]: setting the deadline each time would cost more.
const deadlineStep = time.Second

// wirePiece is how much of a large frame has the time of one write: a slow client gets the frame piece by piece.
const wirePiece = 64 << 10

func (w *wire) send(b []byte) (int, error) {
	for sent := 0; ; {
		if now := time.Now(); now.After(w.renew) {
			if err := w.SetWriteDeadline(now.Add(writeTime + deadlineStep)); err != nil {
				return sent, err //nolint:wrapcheck // the client is gone
			}
			w.renew = now.Add(deadlineStep)
		}
		n, err := w.Conn.Write(b[sent:min(len(b), sent+wirePiece)])
		if sent += n; err != nil || sent == len(b) {
			return sent, err //nolint:wrapcheck // likewise
		}
	}
}

// hijacker is the writer of a handshake, which becomes a wire.
type hijacker struct {
	http.ResponseWriter

	wire *wire // nil before Hijack
}

// Buffers of a socket: most of them are idle.
const wireBuffer = 1 << 10

// Hijack implements [http.Hijacker].
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take the connection: %w", err)
	}
	h.wire = &wire{Conn: conn}
	return h.wire, bufio.NewReadWriter(buffered.Reader, bufio.NewWriterSize(h.wire, wireBuffer)), nil
}
