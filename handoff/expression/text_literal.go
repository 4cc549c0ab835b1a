package expression

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// textLiteral reads a text in quotes with Python's escapes. An unknown escape keeps its backslash.
func (l *lexer) textLiteral(at int) {
	quote := l.source[at]
	var value strings.Builder
	for i := at + 1; l.err == nil; {
		if i >= len(l.source) || l.source[i] == '\n' || l.source[i] == '\r' {
			l.failf(CodeSyntax, at, "add "+string(quote)+` after the text; write \n for a line break in it`, "the text is not closed")
			return
		}
		switch c := l.source[i]; c {
		case quote:
			l.take(textToken, at, i+1, value.String())
			l.checkText(at, i+1)
			return
		case '\\':
			i = l.escape(&value, i)
		default:
			value.WriteByte(c)
			i++
		}
	}
}

// checkText refuses what AG2 would replace within quotes, and bytes that are not UTF-8.
func (l *lexer) checkText(start, end int) {
	written := l.source[start:end]
	if !utf8.ValidString(written) {
		l.failf(CodeSyntax, start, "save the file as UTF-8", "the text is not UTF-8")
		return
	}
	i := strings.Index(written, "${")
	if i < 0 {
		return
	}
	if length := strings.IndexByte(written[i:], '}'); length > 0 {
		l.failf(CodeReferenceInText, start+i, `remove the quotes around it; for the text itself write '$\x7b'`,
			"%s is within quotes", shown(written[i:i+length+1]))
	}
}

// escape decodes what begins with the backslash at i, and returns where it ends.
func (l *lexer) escape(value *strings.Builder, i int) int {
	const intro = 2 // backslash and letter
	rest := l.source[i:]
	if len(rest) < intro {
		return i + 1 // the text is not closed
	}
	c := rest[1]
	if j := strings.IndexByte(`\'"abfnrtv`, c); j >= 0 {
		value.WriteByte("\\'\"\a\b\f\n\r\t\v"[j])
		return i + intro
	}
	switch {
	case strings.HasPrefix(rest[1:], "\r\n"):
		return i + intro + 1
	case c == '\n', c == '\r': // the text continues on the next line
		return i + intro
	case c == 'x':
		return l.codePoint(value, i, intro, 2, 16)
	case c == 'u':
		return l.codePoint(value, i, intro, 4, 16)
	case c == 'U':
		return l.codePoint(value, i, intro, 8, 16)
	case c >= '0' && c <= '7':
		most := min(len(rest), 4)
		length := digitsEnd(rest[:most], 1, "01234567", false) - 1
		return l.codePoint(value, i, 1, length, 8)
	case c == 'N':
		l.failf(CodeNotAllowed, i, `write the character itself, or \u and its number`, `\N is not supported`)
		return i
	}
	value.WriteByte('\\')
	return i + 1
}

// codePoint decodes the digits of an escape.
func (l *lexer) codePoint(value *strings.Builder, i, intro, length, base int) int {
	first, end := i+intro, i+intro+length
	if end > len(l.source) {
		l.failf(CodeSyntax, i, "add the missing digits", "incomplete escape %s", shown(l.source[i:]))
		return i
	}
	r, err := strconv.ParseUint(l.source[first:end], base, 32)
	switch {
	case err != nil || !utf8.ValidRune(rune(min(r, utf8.MaxRune+1))) && r > utf8.MaxRune:
		l.failf(CodeSyntax, i, "write "+strconv.Itoa(length)+" hexadecimal digits of a character", "invalid escape %s", shown(l.source[i:end]))
		return i
	case !utf8.ValidRune(rune(r)):
		l.failf(CodeNotAllowed, i, `write the character itself, or \U and its 8 digits`, "half a character: %s", shown(l.source[i:end]))
		return i
	}
	value.WriteRune(rune(r))
	return end
}
