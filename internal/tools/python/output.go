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

// output turns what a child prints on one stream into log records. It never stops reading, so
// that a tool never blocks on printing, and logs a bounded part.
type output struct {
	log        *slog.Logger               // carries workflow, pid and stream
	callOf     func(id uint64) loggedCall // the call of a number
	mark       string                     // begins a line of a call, followed by its number, a space and the line
	envSecrets redact.Set                 // values of the .env file
	// scrub redacts the secret answers of calls of the process; the line may be cut.
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
		id, line := o.callOfLine(line)
		if id != last {
			last, log = id, o.log.With(o.callOf(id).attrs()...)
		}
		o.Line(log, line, cut, func(text string) string {
			return o.scrub(o.envSecrets.Text(text), cut)
		})
	}
}

// callOfLine returns the call that printed a line, and what it printed. Lines without a mark, for example of
// processes that a tool has started, belong to no call.
func (o *output) callOfLine(line string) (id uint64, text string) {
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

// newMark returns the marker of the lines of a process's calls: what a tool prints of its data
// cannot contain it.
func newMark() string { return rand.Text() + ":" }

// loggedCall is a call as log records name it.
type loggedCall struct {
	id               uint64
	tool, chat, turn string
}

// attrs are the attributes of the call's log records.
func (c loggedCall) attrs() []any {
	if c.id == 0 {
		return nil
	}
	return []any{"tool", c.tool, "chat", c.chat, "turn", c.turn}
}

// loggedCalls remembers the latest calls, for lines that are read after their end.
type loggedCalls [2 * maxShared]loggedCall

func (c *loggedCalls) add(call loggedCall) { c[call.id%uint64(len(c))] = call }

func (c *loggedCalls) of(id uint64) loggedCall {
	if call := c[id%uint64(len(c))]; call.id == id {
		return call
	}
	return loggedCall{}
}
