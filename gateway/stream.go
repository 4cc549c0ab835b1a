package gateway

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/agui"
)

// writeTime is how long a client may take to read a piece of a stream, or of a frame.
const writeTime = 30 * time.Second

// writeOptions are the times of a stream that ends with a context.
func writeOptions(ctx context.Context) agui.WriteOptions {
	return agui.WriteOptions{Timeout: writeTime, Context: ctx}
}

// eventStream writes stored events as server-sent events.
type eventStream struct{ frames *agui.FrameWriter }

// newEventStream sends the headers of a stream.
func newEventStream(ctx context.Context, w http.ResponseWriter) (*eventStream, error) {
	w.Header().Set("Cache-Control", "no-cache, no-store, no-transform")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	frames, err := agui.NewFrameWriter(w, writeOptions(ctx))
	return &eventStream{frames}, err
}

// event queues one event: data is one line of JSON; sequence 0 has no id.
func (s *eventStream) event(name string, sequence uint64, data []byte) error {
	id := ""
	if sequence > 0 {
		id = strconv.FormatUint(sequence, 10)
	}
	return s.frames.Queue(name, id, data)
}
