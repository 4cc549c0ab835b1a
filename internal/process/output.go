package process

import (
	"bufio"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Bounds of the log records of a process's output.
const (
	MaxLine        = 8 << 10 // bytes of a printed line that are logged
	linesPerSecond = 200     // lines of one stream that are logged in a second
	maxLastLine    = 512     // bytes of the last line that an error may quote
)

// Output logs the lines that a process prints on one stream, and a bounded part of them: 200 in
// a second. [Output.Line] and [Output.Flush] are called by the reader of the stream.
type Output struct {
	second          time.Time
	logged, dropped int

	mu   sync.Mutex
	last string
}

// Line logs one line; cut reports that it was longer. Clean makes what may be logged of its text,
// and is asked only if there is room in the log; nil leaves the text as it is.
func (o *Output) Line(log *slog.Logger, line string, cut bool, clean func(string) string) {
	if time.Since(o.second) >= time.Second {
		o.Flush(log)
	}
	if o.logged == linesPerSecond {
		o.dropped++
		return
	}
	text := strings.ToValidUTF8(strings.TrimRight(line, "\r"), "\ufffd")
	if clean != nil {
		text = clean(text)
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	o.mu.Lock()
	o.last = text[:min(len(text), maxLastLine)]
	o.mu.Unlock()
	o.logged++
	if cut {
		log = log.With("cut", true)
	}
	log.Info("tool output", "line", text)
}

// Flush logs how much was omitted, and starts to count again.
func (o *Output) Flush(log *slog.Logger) {
	if o.dropped > 0 {
		log.Warn("tool output omitted", "lines", o.dropped)
	}
	o.second, o.logged, o.dropped = time.Now(), 0, 0
}

// LastLine returns the last line that is not blank, cut at 512 bytes. It may be called while the
// stream is read.
func (o *Output) LastLine() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.ToValidUTF8(o.last, "")
}

// ReadLine returns a line, cut at the size of the reader's buffer.
func ReadLine(in *bufio.Reader) (line string, cut bool, err error) {
	part, more, err := in.ReadLine()
	line, cut = string(part), more
	for more && err == nil {
		_, more, err = in.ReadLine()
	}
	return line, cut, err //nolint:wrapcheck // only the end of the stream
}
