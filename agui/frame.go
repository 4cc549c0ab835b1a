package agui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// AppendFrame appends one server-sent event: with an id and an event name if they are not empty. The parts of AG-UI clients that read
// frames know line feeds only, so there are no carriage returns, and the data is one line.
func AppendFrame(dst []byte, name, id string, data []byte) ([]byte, error) {
	if strings.ContainsAny(id, "\r\n\x00") {
		return dst, fmt.Errorf("the id %.50q of a frame has a line break or NUL", id)
	}
	if bytes.IndexByte(data, '\n') >= 0 || bytes.IndexByte(data, '\r') >= 0 { // faster than ContainsAny
		return dst, errors.New("the data of a frame has a line break")
	}
	if name != "" {
		dst = append(dst, "event: "...)
		dst = append(dst, name...)
		dst = append(dst, '\n')
	}
	if id != "" {
		dst = append(dst, "id: "...)
		dst = append(dst, id...)
		dst = append(dst, '\n')
	}
	dst = append(dst, "data: "...)
	dst = append(dst, data...)
	return append(dst, "\n\n"...), nil
}

// WriteOptions are the times of a [FrameWriter]. The zero value is usable.
type WriteOptions struct {
	// Timeout is how long the client may take for each piece of 32 KiB; 0 is 30 s. So a slow client gets large events too, and one that
	// reads nothing is given up.
	Timeout time.Duration
	// Context, when it ends, leaves the client one second more for what is being written; nil never ends.
	Context context.Context //nolint:containedctx // of the stream
}

// FrameWriter writes frames of server-sent events, those that are queued together. One goroutine at a time may use it.
type FrameWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	options WriteOptions
	queue   []byte // frames that were not written yet, from frameBuffers; nil if there are none
	err     error  // of the connection, for good

	mu      sync.Mutex
	writing bool
	done    bool      // the context has ended
	end     time.Time // of all writes after that
}

const (
	piece     = 32 << 10    // bytes
	afterDone = time.Second // see WriteOptions.Context
)

// NewFrameWriter writes the headers of a stream of server-sent events with status 200, and flushes them: nothing on the way may keep,
// change or compress it. An error means that there is no client any more, or that w cannot be flushed.
func NewFrameWriter(w http.ResponseWriter, options WriteOptions) (*FrameWriter, error) {
	if options.Timeout <= 0 {
		options.Timeout = 30 * time.Second
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-cache, no-transform")
	}
	h.Set("X-Accel-Buffering", "no") // nginx collects replies otherwise
	h.Del("Content-Length")
	f := &FrameWriter{w: w, control: http.NewResponseController(w), options: options}
	w.WriteHeader(http.StatusOK)
	if options.Context != nil {
		context.AfterFunc(options.Context, f.hurry)
	}
	return f, f.write(nil)
}

const (
	queueBytes = 16 << 10 // from which queued frames are written
	keepBuffer = 64 << 10 // the capacity up to which a buffer is used again
)

// frameBuffers: a stream has none while it is idle.
//
//nolint:gochecknoglobals // a pool
var frameBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Queue adds a frame, see [AppendFrame], to those that the next [FrameWriter.Flush] sends together. From 16 KiB on they are sent now.
func (f *FrameWriter) Queue(name, id string, data []byte) error {
	if err := f.add(name, id, data); err != nil || len(f.queue) < queueBytes {
		return err
	}
	return f.Flush()
}

// add is Queue for any size.
func (f *FrameWriter) add(name, id string, data []byte) (err error) {
	if f.err != nil {
		return f.err
	}
	if f.queue == nil {
		free, _ := frameBuffers.Get().(*[]byte)
		f.queue = *free
	}
	f.queue, err = AppendFrame(f.queue, name, id, data)
	return err
}

// Flush sends the frames that are queued. After an error of the connection all calls return it.
func (f *FrameWriter) Flush() error {
	if len(f.queue) == 0 {
		return f.err
	}
	err := f.write(f.queue)
	if free := f.queue[:0]; cap(free) <= keepBuffer {
		frameBuffers.Put(&free)
	}
	f.queue = nil
	return err
}

// hurry ends what is being written, and what comes after it, in a second.
func (f *FrameWriter) hurry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done = true; f.writing {
		f.deadline()
	}
}

// deadline sets the deadline of what is written now. The lock is held.
func (f *FrameWriter) deadline() {
	end := time.Now().Add(f.options.Timeout)
	if f.done {
		if f.end.IsZero() {
			f.end = time.Now().Add(afterDone)
		}
		end = f.end
	}
	_ = f.control.SetWriteDeadline(end) // writers without deadlines, as in tests, write without
}

// write writes frames and flushes them.
func (f *FrameWriter) write(frames []byte) error {
	if f.err != nil {
		return f.err
	}
	f.err = f.pieces(frames)
	f.mu.Lock()
	f.writing = false // w is not used after the last write: its handler may have returned
	// On HTTP/2 a deadline that is left would reset the stream when it passes, also while nothing is written.
	_ = f.control.SetWriteDeadline(time.Time{})
	f.mu.Unlock()
	if f.err != nil {
		f.err = fmt.Errorf("send events: %w", f.err)
	}
	return f.err
}

// pieces writes frames piece by piece, each with a separate deadline.
func (f *FrameWriter) pieces(frames []byte) error {
	for {
		n := min(len(frames), piece)
		f.renew()
		if n > 0 {
			if _, err := f.w.Write(frames[:n]); err != nil {
				return err //nolint:wrapcheck // write wraps it
			}
		}
		if frames = frames[n:]; len(frames) == 0 {
			return f.control.Flush() //nolint:wrapcheck // likewise
		}
	}
}

// renew sets the deadline of the next piece.
func (f *FrameWriter) renew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing = true
	f.deadline()
}

// KeepAlive sends what is queued and a comment, so that proxies and clients do not take a quiet stream for a dead connection. Every
// 15 s is usual.
func (f *FrameWriter) KeepAlive() error {
	if err := f.Flush(); err != nil {
		return err
	}
	return f.write([]byte(": keep-alive\n\n"))
}
