package agui

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// MaxEvent is the most bytes that the JSON of an event may have. Clients give up at 10 MiB.
const MaxEvent = 8 << 20

// StreamOptions configures a [Stream]. The zero value is a stream that every client can read.
type StreamOptions struct {
	// Peer is the client: events are sent as [Downgrade] returns them for it.
	Peer Peer
	// Verifier, if set, checks each event before it is sent.
	Verifier *Verifier
	// WriteTimeout is how long the client may take for what one call sends; 0 is 30 s.
	WriteTimeout time.Duration
}

// Stream sends the events of a run to a client, as server-sent events. One goroutine at a time may use it.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	options StreamOptions
	buf     []byte
	sending []Event // of one call
	err     error   // of the connection, for good
}

// NewStream writes the headers of the stream with status 200 and flushes them, so that the client knows that the run has
// been accepted. Refuse an input before. An error means that there is no client any more, or that w cannot be flushed.
func NewStream(w http.ResponseWriter, options StreamOptions) (*Stream, error) {
	if options.WriteTimeout <= 0 {
		options.WriteTimeout = 30 * time.Second
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx collects replies otherwise
	h.Del("Content-Length")
	w.WriteHeader(http.StatusOK)
	s := &Stream{w: w, control: http.NewResponseController(w), options: options}
	return s, s.flush()
}

// Send sends events and flushes them. An error before an event is written, such as a violation of the protocol or an event
// over [MaxEvent], leaves the stream as it is after the events before it; others, for example [RunError], can follow. After an
// error of the connection all calls return it.
func (s *Stream) Send(events ...Event) error { return s.SendWithID("", events...) }

// SendWithID is [Stream.Send], and gives the last event the id of the SSE frame. A client that has seen the id has seen all
// of these events. AG-UI clients ignore it; it is for other readers.
func (s *Stream) SendWithID(id string, events ...Event) error {
	if s.err != nil {
		return s.err
	}
	s.buf = s.buf[:0]
	s.sending = s.sending[:0]
	for _, e := range events {
		if e = Downgrade(e, s.options.Peer); e != nil {
			s.sending = append(s.sending, e)
		}
	}
	var refused error
	for i, e := range s.sending {
		frameID := ""
		if i == len(s.sending)-1 {
			frameID = id
		}
		if refused = s.append(frameID, e); refused != nil {
			break
		}
	}
	clear(s.sending)
	if len(s.buf) == 0 {
		return refused
	}
	return errors.Join(refused, s.flush())
}

// append adds the frame of an event to what is to be written.
func (s *Stream) append(id string, e Event) error {
	data, err := e.MarshalJSON()
	if err != nil {
		return fmt.Errorf("send an event: %w", err)
	}
	if len(data) > MaxEvent {
		return fmt.Errorf("send %s: %d bytes, over the limit of %d: send a reference to the data", e.Type(), len(data), MaxEvent)
	}
	framed, err := appendFrame(s.buf, id, data)
	if err != nil {
		return err
	}
	if s.options.Verifier != nil {
		if err := s.options.Verifier.Check(e); err != nil {
			return err
		}
	}
	s.buf = framed
	return nil
}

// KeepAlive sends a comment, so that proxies and clients do not take a quiet run for a dead connection. Every 15 s is usual.
func (s *Stream) KeepAlive() error {
	if s.err != nil {
		return s.err
	}
	s.buf = append(s.buf[:0], ": keep-alive\n\n"...)
	return s.flush()
}

// keepBuffer is the capacity up to which a buffer is used again.
const keepBuffer = 64 << 10

// flush writes and flushes what is in the buffer.
func (s *Stream) flush() error {
	// The deadline is removed again: on HTTP/2 it would reset the stream when it passes, also while nothing is written.
	// Writers without deadlines, as in tests, are fine.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.options.WriteTimeout))
	if len(s.buf) > 0 {
		_, s.err = s.w.Write(s.buf)
	}
	if s.err == nil {
		s.err = s.control.Flush()
	}
	_ = s.control.SetWriteDeadline(time.Time{})
	if s.buf = s.buf[:0]; cap(s.buf) > keepBuffer {
		s.buf = nil
	}
	if s.err != nil {
		s.err = fmt.Errorf("send events: %w", s.err)
	}
	return s.err
}
