package agentjson

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const byteOrderMark = '\ufeff'

// space skips white space and comments, and characters that people see as white space.
func (r *reader) space() {
	for {
		r.blanks()
		if !r.comment() {
			return
		}
	}
}

// blanks is space without comments.
func (r *reader) blanks() {
	for r.pos < len(r.s) {
		switch c := r.s[r.pos]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			r.pos++
		case c >= utf8.RuneSelf:
			char, size := utf8.DecodeRuneInString(r.s[r.pos:])
			if !isInvisible(char) {
				return
			}
			r.pos += size
			r.replace(invisible, r.pos-size, r.pos, "")
		default:
			return
		}
	}
}

// comment skips a comment. One that does not end skips the rest of the text, whose end is found where a value is expected.
func (r *reader) comment() bool {
	start, rest, with := r.pos, r.s[r.pos:], ""
	switch {
	case strings.HasPrefix(rest, "#"), strings.HasPrefix(rest, "//"):
		r.line()
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[len("/*"):], "*/")
		if end < 0 {
			r.pos = len(r.s)
			return true
		}
		r.pos += end + len("/**/")
		with = " "
	default:
		return false
	}
	r.replace(comment, start, r.pos, with)
	return true
}

// line skips the rest of the line.
func (r *reader) line() {
	if i := strings.IndexByte(r.s[r.pos:], '\n'); i >= 0 {
		r.pos += i
		return
	}
	r.pos = len(r.s)
}

// isInvisible reports whether c is space of any kind beyond the four characters of JSON.
func isInvisible(c rune) bool {
	switch c {
	case '\u200b', '\u200c', '\u200d', '\u2060', byteOrderMark, '\u200e', '\u200f':
		return true
	default:
		return c >= utf8.RuneSelf && unicode.IsSpace(c)
	}
}

// isSpaceBefore reports whether s ends with white space, or with a comment.
func isSpaceBefore(s string) bool {
	c, _ := utf8.DecodeLastRuneInString(s)
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || isInvisible(c) || strings.HasSuffix(s, "*/")
}

// isNamePart reports whether c may stand in a name of JavaScript.
func isNamePart(c rune) bool {
	return c == '_' || c == '$' || unicode.IsLetter(c) || isDigit(c)
}

func isDigit(c rune) bool { return c >= '0' && c <= '9' }
