package gateway

import (
	"net/http"
	"strconv"
	"time"
)

// writeTime is how long a client may take to read one event, or one frame.
const writeTime = 30 * time.Second

// eventStream writes server-sent events, each flushed.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// newEventStream sends the headers of a stream: nothing on its way may keep, change or compress it.
func newEventStream(w http.ResponseWriter) (*eventStream, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	s := &eventStream{w, http.NewResponseController(w)}
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime)) // a writer without deadlines writes without
	w.WriteHeader(http.StatusOK)
	return s, s.control.Flush() //nolint:wrapcheck // the client is gone
}

// event sends one event: data is one line of JSON; sequence 0 has no id.
func (s *eventStream) event(name string, sequence uint64, data []byte) error {
	b := make([]byte, 0, len(data)+64)
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	if sequence > 0 {
		b = append(strconv.AppendUint(append(b, "id: "...), sequence, 10), '\n')
	}
	b = append(append(append(b, "data: "...), data...), "\n\n"...)
	return s.write(b)
}

// keepAlive sends a comment, so that nothing on the way ends the connection.
func (s *eventStream) keepAlive() error { return s.write([]byte(": keep-alive\n\n")) }

func (s *eventStream) write(b []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime)) // as above
	if _, err := s.w.Write(b); err != nil {
		return err //nolint:wrapcheck // the client is gone, or does not read
	}
	return s.control.Flush() //nolint:wrapcheck // likewise
}
