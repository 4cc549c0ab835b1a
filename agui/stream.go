package agui

import (
	"errors"
	"fmt"
	"net/http"
)

// MaxEvent is the most bytes that the JSON of an event may have. Clients give up at 10 MiB.
const MaxEvent = 8 << 20

// StreamOptions configures a [Stream]. The zero value is a stream that every client can read.
type StreamOptions struct {
	// Peer is the client: events are sent as [Downgrade] returns them for it.
	Peer Peer
	// Verifier, if set, checks each event before it is sent.
	Verifier *Verifier
	// Write has the times in which the client has to read.
	Write WriteOptions
}

// Stream sends the events of a run to a client, as server-sent events. One goroutine at a time may use it.
type Stream struct {
	frames  *FrameWriter
	options StreamOptions
	sending []Event // of one call
}

// NewStream writes the headers of the stream with status 200 and flushes them, so that the client knows that the run has
// been accepted. Refuse an input before. An error means that there is no client any more, or that w cannot be flushed.
func NewStream(w http.ResponseWriter, options StreamOptions) (*Stream, error) {
	frames, err := NewFrameWriter(w, options.Write)
	return &Stream{frames: frames, options: options}, err
}

// Send sends events and flushes them. An error before an event is written, such as a violation of the protocol or an event
// over [MaxEvent], leaves the stream as it is after the events before it; others, for example [RunError], can follow. After an
// error of the connection all calls return it.
func (s *Stream) Send(events ...Event) error { return s.SendWithID("", events...) }

// SendWithID is [Stream.Send], and gives the last event the id of the SSE frame. A client that has seen the id has seen all
// of these events. AG-UI clients ignore it; it is for other readers.
func (s *Stream) SendWithID(id string, events ...Event) error {
	refused := s.Queue(id, events...)
	if s.frames.err != nil {
		return refused
	}
	return errors.Join(refused, s.Flush())
}

// Queue is [Stream.SendWithID] for events that others follow immediately: they are sent together, by the next call that sends something,
// or once they have 16 KiB.
func (s *Stream) Queue(id string, events ...Event) error {
	if s.frames.err != nil {
		return s.frames.err
	}
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
	if len(s.frames.queue) < queueBytes {
		return refused
	}
	return errors.Join(refused, s.Flush())
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
	before := len(s.frames.queue)
	if err := s.frames.add("", id, data); err != nil {
		return err
	}
	if s.options.Verifier != nil {
		if err := s.options.Verifier.Check(e); err != nil {
			s.frames.queue = s.frames.queue[:before]
			return err
		}
	}
	return nil
}

// KeepAlive sends a comment, see [FrameWriter.KeepAlive].
func (s *Stream) KeepAlive() error { return s.frames.KeepAlive() }

// Flush sends the events that are queued.
func (s *Stream) Flush() error { return s.frames.Flush() }
