package python

import (
	"bufio"
	"crypto/rand"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/internal/process"
	"github.com/oneturn/oneturn/internal/redact"
)

// output turns what a child prints on one stream into log records. It always reads on, so
// that a tool never blocks on printing, and logs a bounded part.
type output struct {
	log   *slog.Logger          // carries workflow, pid and stream
	who   func(id uint64) voice // the call of a number
	mark  string                // begins a line of a call: then come its number, a space and the line
	known redact.Secrets        // values of the .env file
	// scrub redacts the secrets that calls of the process were handed; the line may be cut.
	scrub func(line string, cut bool) string

	process.Output
}

// copy reads until the stream ends.
func (o *output) copy(r io.Reader) {
	in := bufio.NewReaderSize(r, process.MaxLine)
	last, log := uint64(0), o.log // the call of the latest line, and the log for its lines
	defer func() { o.Flush(log) }()
	for {
		line, cut, err := process.ReadLine(in)
		if err != nil && line == "" {
			return
		}
		id, line := o.speaker(line)
		if id != last {
			last, log = id, o.log.With(o.who(id).attrs()...)
		}
		o.Line(log, line, cut, func(text string) string {
			return o.scrub(o.known.Text(text), cut)
		})
	}
}

// speaker returns the call that printed a line, and what it printed. Lines without a mark, those of
// processes that a tool has started for one, belong to no call.
func (o *output) speaker(line string) (id uint64, text string) {
	marked, ok := strings.CutPrefix(line, o.mark)
	number, text, found := strings.Cut(marked, " ")
	if !ok || !found {
		return 0, line
	}
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, line
	}
	return id, text
}

// newMark returns the word that marks the lines of a process's calls: what a tool prints of its data
// cannot contain it.
func newMark() string { return rand.Text() + ":" }

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
