package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
)

// WriteJSON writes v as JSON, each level of it after one more indent, or on one line if indent is "".
func WriteJSON(w io.Writer, v any, indent string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// Locked makes a writer safe for several goroutines.
func Locked(w io.Writer) io.Writer { return &locked{w: w} }

type locked struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements [io.Writer].
func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p) //nolint:wrapcheck // it stands in for w
}

// ShellWord prints a text as a shell takes it, safe for a terminal.
func ShellWord(text string) string {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./@:+,=%", r))
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	safe := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	return "'" + strings.ReplaceAll(safe, "'", `'\''`) + "'"
}
