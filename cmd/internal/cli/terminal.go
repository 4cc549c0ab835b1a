package cli

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Terminal returns a writer for what commands print: results, events and errors hold text that
// models, tools and services wrote, and a terminal must not take any of it for commands. Control
// characters other than tab and line end (C0, C1), those that reorder or hide text (bidi and other
// formats, line and paragraph separators), and bytes that are not UTF-8 are escaped as \uXXXX: within
// a JSON string the value stays the same.
func Terminal(w io.Writer) io.Writer { return terminal{w} }

type terminal struct{ w io.Writer }

// Write implements [io.Writer]. Callers write whole characters.
func (t terminal) Write(p []byte) (int, error) {
	var safe []byte // nil until something is escaped
	for i := 0; i < len(p); {
		r, size := utf8.DecodeRune(p[i:])
		broken := r == utf8.RuneError && size == 1
		if broken || hostile(r) {
			if safe == nil {
				safe = append(make([]byte, 0, len(p)+len(p)/2), p[:i]...)
			}
			if broken {
				r = rune(p[i])
			}
			safe = escape(safe, r)
		} else if safe != nil {
			safe = append(safe, p[i:i+size]...)
		}
		i += size
	}
	if safe == nil {
		return t.w.Write(p) //nolint:wrapcheck // it stands in for w
	}
	if _, err := t.w.Write(safe); err != nil {
		return 0, err //nolint:wrapcheck // it stands in for w
	}
	return len(p), nil
}

// hostile reports whether a terminal might act on a character. The two joiners are part of words and
// emoji.
func hostile(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	if r >= ' ' && r <= '~' {
		return false // most are these
	}
	switch r {
	case '\n', '\t', nonJoiner, joiner:
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func escape(to []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Appendf(to, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(to, `\u%04x`, r)
}
