package python

import (
	"bufio"
	"io"
	"log/slog"
	"strconv"
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
	log    *slog.Logger          // carries workflow, pid and stream
	who    func(id uint64) voice // the call of a number
	redact *strings.Replacer     // nil when there is nothing to blot out
	// scrub blots out the secrets that calls of the process were handed; the line may be cut.
	scrub func(line string, cut bool) string

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
	log := o.log
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
		if id, ok := speaker(line); ok {
			log = o.log.With(o.who(id).attrs()...)
			continue
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
		text = o.scrub(text, cut)
		if strings.TrimSpace(text) == "" {
			continue
		}
		o.remember(text)
		logged++
		log.Info("tool output", "line", text, "cut", cut)
	}
}

// speaker returns the call whose lines follow, if line says so. The host writes such a line
// when another call begins to print than before; 0 is none.
func speaker(line string) (id uint64, ok bool) {
	text, ok := strings.CutPrefix(line, "\x1e")
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(text, 10, 64)
	return id, err == nil
}

// voice is a call as log records name it.
type voice struct {
	id               uint64
	tool, chat, turn string
}

// attrs are the attributes of the call's log records.
func (v voice) attrs() []any {
	if v.id == 0 {
		return nil
	}
	return []any{"tool", v.tool, "chat", v.chat, "turn", v.turn}
}

// voices remembers the latest calls, for lines that are read after their end.
type voices [2 * maxShared]voice

func (v *voices) add(call voice) { v[call.id%uint64(len(v))] = call }

func (v *voices) of(id uint64) voice {
	if call := v[id%uint64(len(v))]; call.id == id {
		return call
	}
	return voice{}
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
