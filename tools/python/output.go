package python

import (
	"bufio"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	maxLine        = 8 << 10 // bytes of a printed line that are logged
	linesPerSecond = 200     // lines of one stream that are logged in a second
	maxLastLine    = 512     // bytes of the last line that an error may quote
)

// output turns what a child prints on one stream into log records. It always reads on, so
// that a tool never blocks on printing, and logs a bounded part.
type output struct {
	log    *slog.Logger      // carries workflow, pid and stream
	redact *strings.Replacer // nil when there is nothing to blot out

	mu   sync.Mutex
	last string
}

// newRedactor blots the secrets out of a text; nil without secrets.
func newRedactor(secrets []string) *strings.Replacer {
	if len(secrets) == 0 {
		return nil
	}
	pairs := make([]string, 0, 2*len(secrets)) //nolint:mnd // old and new
	for _, secret := range secrets {
		pairs = append(pairs, secret, "***")
	}
	return strings.NewReplacer(pairs...)
}

// copy reads until the stream ends.
func (o *output) copy(r io.Reader) {
	in := bufio.NewReaderSize(r, maxLine)
	second, logged, dropped := time.Now(), 0, 0
	flush := func() {
		if dropped > 0 {
			o.log.Warn("tool output left out", "lines", dropped)
		}
		second, logged, dropped = time.Now(), 0, 0
	}
	defer flush()
	for {
		line, cut, err := readLine(in)
		if err != nil && line == "" {
			return
		}
		if time.Since(second) >= time.Second {
			flush()
		}
		if logged == linesPerSecond {
			dropped++
			continue
		}
		text := strings.ToValidUTF8(strings.TrimRight(line, "\r"), "\ufffd")
		if o.redact != nil {
			text = o.redact.Replace(text)
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		o.remember(text)
		logged++
		o.log.Info("tool output", "line", text, "cut", cut)
	}
}

// readLine returns a line, cut at the size of the reader's buffer.
func readLine(in *bufio.Reader) (line string, cut bool, err error) {
	part, more, err := in.ReadLine()
	line, cut = string(part), more
	for more && err == nil {
		_, more, err = in.ReadLine()
	}
	return line, cut, err //nolint:wrapcheck // only tells the end
}

func (o *output) remember(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = line[:min(len(line), maxLastLine)]
}

// lastLine returns the last line that is not blank, cut at 512 bytes.
func (o *output) lastLine() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}
