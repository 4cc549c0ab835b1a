package inbound

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// MaxSenderHeaders bounds the headers of a sender that are kept with a message that is stored again, in bytes.
const MaxSenderHeaders = 8 << 10

var tracePattern = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// TraceParent is how some clients write the header of the trace context.
const TraceParent = "Traceparent"

// Trace returns the W3C trace context of a message, "" if it has none that is well formed.
func Trace(h nats.Header) string {
	for _, name := range []string{idempotency.HeaderTrace, TraceParent} {
		if v := h[name]; len(v) == 1 && tracePattern.MatchString(v[0]) {
			return v[0]
		}
	}
	return ""
}

// maxDepth is the depth of a message whose header is larger, or cannot be read: too deep for any program.
const maxDepth = 99

// Depth returns how many programs the turn of a message is in: the tool of one of their steps has published it.
func Depth(h nats.Header) int {
	values := h[subjects.HeaderDepth]
	if len(values) == 0 {
		return 0
	}
	depth, err := strconv.ParseUint(values[0], 10, 16)
	if err != nil || len(values) > 1 {
		return maxDepth
	}
	return min(int(depth), maxDepth)
}

// SenderHeaders returns the headers of a message without those that the server would interpret.
func SenderHeaders(all nats.Header) nats.Header {
	header := nats.Header{}
	for name, values := range all {
		if lower := strings.ToLower(name); lower != "status" && !strings.HasPrefix(lower, "nats-") {
			header[name] = values
		}
	}
	return header
}

// HeaderSize is how many bytes the values of a header take.
func HeaderSize(name string, values []string) (size int) {
	for _, value := range values {
		size += len(name) + len(value) + len(": \r\n")
	}
	return size
}

// Origin names the message of a stream uniquely, also after the stream was deleted and created again and repeats its
// sequences.
func (m *Message) Origin() string {
	return m.Lease.Stream + "/" + strconv.FormatUint(m.Lease.Seq, 10) + "/" + strconv.FormatInt(m.Stored.UnixNano(), 10)
}
