package agui

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// AppendFrame appends one server-sent event: with an id and an event name if they are not empty. The parts of AG-UI clients that read
// frames know line feeds only, so there are no carriage returns, and the data is one line.
func AppendFrame(dst []byte, name, id string, data []byte) ([]byte, error) {
	if strings.ContainsAny(id, "\r\n\x00") {
		return dst, fmt.Errorf("the id %.50q of a frame has a line break or NUL", id)
	}
	if bytes.ContainsAny(data, "\r\n") {
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
	// Done, when it is closed, leaves the client one second more for what is being written.
	Done <-chan struct{}
}

// FrameWriter writes frames of server-sent events, and flushes them. One goroutine at a time may use it.
type FrameWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	options WriteOptions
	end     time.Time // of all writes, after Done was closed
	err     error     // of the connection, for good
}

const (
	piece     = 32 << 10    // bytes
	afterDone = time.Second // see WriteOptions.Done
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
	return f, f.Write(nil)
}

// Write writes frames and flushes them. After an error all calls return it.
func (f *FrameWriter) Write(frames []byte) error {
	if f.err != nil {
		return f.err
	}
	written := make(chan struct{})
	watched := make(chan struct{})
	if len(frames) > 0 && f.options.Done != nil {
		go func() {
			defer close(watched)
			select {
			case <-f.options.Done:
				_ = f.control.SetWriteDeadline(time.Now().Add(afterDone)) // of the piece that is being written
			case <-written:
			}
		}()
	} else {
		close(watched)
	}
	f.err = f.pieces(frames)
	close(written)
	<-watched
	// On HTTP/2 a deadline that is left would reset the stream when it passes, also while nothing is written.
	_ = f.control.SetWriteDeadline(time.Time{})
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
				return err //nolint:wrapcheck // Write wraps it
			}
		}
		if frames = frames[n:]; len(frames) == 0 {
			return f.control.Flush() //nolint:wrapcheck // likewise
		}
	}
}

// renew sets the deadline of the next piece. Writers without deadlines, as in tests, write without.
func (f *FrameWriter) renew() {
	if !f.isDone() {
		_ = f.control.SetWriteDeadline(time.Now().Add(f.options.Timeout))
	}
	if f.isDone() { // also if it was closed just now
		if f.end.IsZero() {
			f.end = time.Now().Add(afterDone)
		}
		_ = f.control.SetWriteDeadline(f.end)
	}
}

func (f *FrameWriter) isDone() bool {
	select {
	case <-f.options.Done:
		return true
	default:
		return false
	}
}

// KeepAlive sends a comment, so that proxies and clients do not take a quiet stream for a dead connection. Every 15 s is usual.
func (f *FrameWriter) KeepAlive() error { return f.Write([]byte(": keep-alive\n\n")) }
