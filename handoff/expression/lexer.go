package expression

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	endToken  tokenKind = iota
	nameToken           // word, also True, and, not
	refToken            // ${name}; text is the name
	textToken           // text is its value
	numToken
	signToken // operators and parentheses; text is the sign
)

type token struct {
	kind       tokenKind
	start, end int // bytes of the source
	text       string
	number     decimal
}

// lexer splits a condition into tokens. The first error ends it: all later tokens are ends.
type lexer struct {
	source string
	tok    token
	before int // end of the token before tok
	err    *Error
}

// failf notes the first error.
func (l *lexer) failf(code Code, at int, fix, format string, args ...any) {
	if l.err == nil {
		l.err = l.errorAt(code, at, fix, format, args...)
	}
	l.tok = token{kind: endToken, start: len(l.source), end: len(l.source)}
}

func (l *lexer) errorAt(code Code, at int, fix, format string, args ...any) *Error {
	column := utf8.RuneCountInString(l.source[:at]) + 1
	return &Error{Code: code, Column: column, Message: fmt.Sprintf(format, args...), Fix: fix}
}

// blank reports whether c is white space between tokens.
func blank(c byte) bool { return strings.IndexByte(" \t\n\r\f", c) >= 0 }

// next reads the next token into tok.
func (l *lexer) next() {
	if l.err != nil {
		return
	}
	l.before = l.tok.end
	at := l.before
	for at < len(l.source) && blank(l.source[at]) {
		at++
	}
	if at == len(l.source) {
		l.tok = token{kind: endToken, start: at, end: at}
		return
	}
	switch c := l.source[at]; {
	case c == '$':
		l.reference(at)
	case c == '"', c == '\'':
		l.textLiteral(at)
	case digit(l.source, at), c == '.' && digit(l.source, at+1):
		l.numberLiteral(at)
	case c == '_' || c >= utf8.RuneSelf || unicode.IsLetter(rune(c)):
		l.name(at)
	default:
		l.sign(at)
	}
}

// take sets the token that ends before end.
func (l *lexer) take(kind tokenKind, start, end int, text string) {
	l.tok = token{kind: kind, start: start, end: end, text: text}
}

func (l *lexer) reference(at int) {
	if !strings.HasPrefix(l.source[at:], "${") {
		l.failf(CodeSyntax, at, "write ${name}", "$ without braces")
		return
	}
	name, _, closed := strings.Cut(l.source[at+2:], "}")
	switch {
	case !closed:
		l.failf(CodeSyntax, at, "add } after the name of the variable", "${ is not closed")
	case !isName(name):
		fix := "write only the name of a variable: letters, digits and _, not a digit first"
		if trimmed := strings.TrimSpace(name); isName(trimmed) {
			fix = fmt.Sprintf("write ${%s}", trimmed)
		}
		l.failf(CodeBadName, at, fix, "%s within ${} is not a name", shown(name))
	default:
		l.take(refToken, at, at+len("${}")+len(name), name)
	}
}

// isName reports whether text can be the name of a variable: an identifier in any alphabet.
func isName(text string) bool {
	return text != "" && utf8.ValidString(text) && nameEnd(text, 0) == len(text)
}

// nameEnd returns where the identifier that begins at start ends; start if there is none.
func nameEnd(text string, start int) int {
	at := start
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		first := r == '_' || unicode.In(r, unicode.L, unicode.Nl)
		if !first && (at == start || !unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc)) {
			break
		}
		at += size
	}
	return at
}

func (l *lexer) name(at int) {
	end := nameEnd(l.source, at)
	if end > at {
		l.take(nameToken, at, end, l.source[at:end])
		return
	}
	r, size := utf8.DecodeRuneInString(l.source[at:])
	switch {
	case r == utf8.RuneError && size <= 1:
		l.failf(CodeSyntax, at, "save the file as UTF-8", "byte 0x%02X is not UTF-8", l.source[at])
	case unicode.IsSpace(r):
		l.failf(CodeSyntax, at, "write an ordinary space", "special space %U", r)
	case strings.ContainsRune("“”„‟‘’‚«»＂＇", r):
		l.failf(CodeSyntax, at, `write ' or "`, "typographic quote %q", r)
	default:
		l.failf(CodeSyntax, at, "remove it, or put quotes around the text", "unexpected character %q", r)
	}
}

// sign reads an operator, the longest that fits.
func (l *lexer) sign(at int) {
	for _, sign := range []string{"===", "!==", "==", "!=", "<=", ">=", "<>", "=>", "&&", "||", ":=", "**", "//", "<<", ">>", "->"} {
		if strings.HasPrefix(l.source[at:], sign) {
			l.take(signToken, at, at+len(sign), sign)
			return
		}
	}
	l.take(signToken, at, at+1, l.source[at:at+1])
}

// is reports whether the token is this sign or word.
func (t token) is(text string) bool {
	return (t.kind == signToken || t.kind == nameToken) && t.text == text
}

// shown quotes a piece of a condition, cut to a length that people read.
func shown(text string) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:most], ""))
	}
	return fmt.Sprintf("%q", text)
}
