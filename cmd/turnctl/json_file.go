package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

// maxArgument bounds JSON that a command reads, in bytes.
const maxArgument = 64 << 20

// readJSON reads the JSON in a file, or of standard input for "-", which begins with a byte order mark if some programs of Windows have
// written it. What names it in errors.
func (a *app) readJSON(command, file, what string) ([]byte, error) {
	in := a.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, cli.Usagef("%s: %w", command, err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxArgument+1))
	switch {
	case err != nil:
		return nil, cli.Usagef("%s: %s cannot be read: %w", command, what, err)
	case len(text) > maxArgument:
		return nil, cli.Usagef("%s: %s has over %d bytes", command, what, maxArgument)
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}

// isSeveral reports whether a text has several JSON documents, one a line, as a file of events.
func isSeveral(text []byte) bool {
	first, rest, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return len(rest) > 0 && json.Valid(first)
}
