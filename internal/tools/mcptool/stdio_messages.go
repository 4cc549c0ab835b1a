package mcptool

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/oneturn/oneturn/internal/process"
)

// The output of a server process: lines that are messages go to the SDK, everything else to the log. Programs
// print between their messages, fold messages over lines, and omit line ends; a message that is too large ends the
// process.

// messages passes the messages of the server, and logs what else its program prints: one line
// that is not a message would end the session.
func (c *child) messages(from io.Reader, to *io.PipeWriter, log *slog.Logger) {
	in := bufio.NewReaderSize(from, 64<<10) //nolint:mnd // a pipe holds as much
	var junk process.Output
	var block []byte // of a message that is written over several lines
	defer func() {
		junk.Flush(log)
		_ = to.Close()
		_, _ = io.Copy(io.Discard, in) // it must not block on printing
	}()
	for {
		line, err := c.line(in)
		if line, block = unfolded(line, block, c.session.server.o.maxMessage()); block != nil && err == nil {
			continue
		}
		msg, rest := message(line)
		if len(bytes.TrimSpace(rest)) > 0 {
			if msg == nil && bytes.HasPrefix(bytes.TrimSpace(rest), []byte("{")) && bytes.Contains(rest, []byte(`"jsonrpc"`)) { // of the call, not of the log
				msg = c.session.unreadable(bytes.TrimSpace(rest))
				rest = fmt.Appendf(nil, "a message that cannot be read (%d bytes)", len(rest))
			}
			text := string(rest[:min(len(rest), process.MaxLine)])
			junk.Line(log, strings.TrimRight(text, "\n"), len(rest) > len(text), c.envSecrets.Text)
		}
		if msg != nil {
			if msg = c.session.admit(msg); msg == nil {
				continue
			}
			if !c.session.saw(msg) {
				c.cut(false, tooMuchWanted)
				return
			}
			if _, err := to.Write(append(msg, '\n')); err != nil {
				return // the session is closed
			}
		}
		if err != nil {
			return
		}
	}
}

// line reads a line of the server; one that is too long for a message ends the process.
func (c *child) line(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if most := c.session.server.o.maxMessage(); len(line) > most {
			c.cut(true, fmt.Sprintf("a message of it has more than %d bytes", most))
			return nil, errTooLarge
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err //nolint:wrapcheck // only the end of the stream
		}
	}
}

var errTooLarge = errors.New("a message is too large")

// unfolded joins the lines of a message that is written over several: from one that is only a
// brace to one that begins with the other. It returns what is to be read as one line, or the block
// so far.
func unfolded(line, block []byte, most int) (whole, rest []byte) {
	switch {
	case block == nil && string(bytes.TrimSpace(line)) != "{", bytes.HasPrefix(line, []byte(`{"`)), len(block)+len(line) > most:
		return line, nil
	}
	block = append(block, line...)
	if !bytes.HasPrefix(line, []byte("}")) {
		return nil, block
	}
	return bytes.ReplaceAll(block, []byte("\n"), []byte(" ")), nil
}

// message returns the JSON-RPC message of a line, if there is one, and what stands before it or
// instead: a program may print without ending its line.
func message(line []byte) (msg, rest []byte) {
	trimmed := bytes.TrimPrefix(bytes.TrimSpace(line), []byte("\xef\xbb\xbf"))
	if !bytes.Contains(line, []byte(`"jsonrpc"`)) {
		var w wire
		if bytes.HasPrefix(trimmed, []byte("{")) && json.Unmarshal(trimmed, &w) == nil && w.ID != nil && w.answers() {
			return bytes.Clone(trimmed), nil
		}
		return nil, line
	}
	if json.Valid(trimmed) && (trimmed[0] == '{' || trimmed[0] == '[') {
		return bytes.Clone(trimmed), nil
	}
	if at := bytes.Index(trimmed, []byte(`{"jsonrpc"`)); at > 0 && json.Valid(trimmed[at:]) {
		return bytes.Clone(trimmed[at:]), trimmed[:at]
	}
	return nil, line
}

// printed logs what the server prints on its standard error.
func (c *child) printed(from io.Reader, log *slog.Logger) {
	in := bufio.NewReaderSize(from, process.MaxLine)
	defer c.errors.Flush(log)
	for {
		line, cut, err := process.ReadLine(in)
		if line != "" {
			c.errors.Line(log, line, cut, c.envSecrets.Text)
		}
		if err != nil {
			return
		}
	}
}
