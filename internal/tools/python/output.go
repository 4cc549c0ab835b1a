package python

import (
	"bufio"
	"crypto/rand"
	"io"
	"log/slog"
	"slices"
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

// maxSecretCalls is for how many ended calls with secret answers the output of a process is searched: a
// thread, or a variable of the module, may outlive its call. The output of a process with more such
// calls is withheld; it takes no new calls and ends with its last one.
const maxSecretCalls = 64

// watchSecrets records that a call has got a secret answer, if it has, before its process can print it.
func (c *child) watchSecrets(p *pending) {
	if !p.secrets.Active() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*pending
	if old := c.secretCalls.Load(); old != nil {
		all = *old
	}
	if slices.Contains(all, p) {
		return
	}
	all = append(slices.Clone(all), p)
	for ended := len(all) - maxSecretCalls; ended > 0; ended-- { // the oldest that has ended; none that runs
		i := slices.IndexFunc(all, func(p *pending) bool { return !c.has(p) })
		if i < 0 {
			break
		}
		all = slices.Delete(all, i, i+1)
		if !c.withheld.Swap(true) {
			c.log.Warn("a Python process got more secret answers than its output is searched for: its output is withheld, and it is replaced", "calls", maxSecretCalls)
		}
	}
	c.secretCalls.Store(&all)
}

// scrub redacts the secrets of all calls of the process in a line: which call has printed a line is not
// always known.
func (c *child) scrub(line string, cut bool) string {
	all := c.secretCalls.Load()
	switch {
	case all == nil || line == "":
		return line
	case c.withheld.Load():
		return redact.Replacement
	}
	for _, p := range *all {
		if cut {
			line = p.secrets.Cut(line)
		} else {
			line = p.secrets.Text(line)
		}
	}
	return line
}
