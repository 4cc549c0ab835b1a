package agentjson

import (
	"strings"
	"unicode/utf8"
)

// Strings in four kinds of quotes. The characters of the value stay what they are: only the way they are written
// changes to JSON's.

// quoting is the kind of quotes around a string.
type quoting int

const (
	noQuote quoting = iota
	double
	single
	smart       // “ ” „ ‟
	smartSingle // ‘ ’ ‚ ‛
)

// quote returns which kind begins at pos.
func (r *reader) quote() quoting {
	if r.pos >= len(r.s) {
		return noQuote
	}
	switch c := r.s[r.pos]; {
	case c == '"':
		return double
	case c == '\'':
		return single
	case c < utf8.RuneSelf:
		return noQuote
	}
	c, _ := utf8.DecodeRuneInString(r.s[r.pos:])
	return smartQuote(c)
}

func smartQuote(c rune) quoting {
	switch c {
	case '“', '”', '„', '‟':
		return smart
	case '‘', '’', '‚', '‛':
		return smartSingle
	default:
		return noQuote
	}
}

// str reads the string at pos.
func (r *reader) str() *Error {
	kind := r.quote()
	if kind == double && r.plain() {
		return nil
	}
	repair := map[quoting]set{single: singleQuotes, smart: smartQuotes, smartSingle: smartQuotes}[kind]
	r.bound(kind, repair)
	for r.pos < len(r.s) {
		start := r.pos
		c, size := utf8.DecodeRuneInString(r.s[r.pos:])
		switch {
		case ends(kind, c):
			r.bound(kind, repair)
			return nil
		case c == utf8.RuneError && size == 1:
			return r.fail(BadString, "invalid UTF-8: send UTF-8")
		case c == '\\':
			if err := r.escape(kind); err != nil {
				return err
			}
		case c == '"':
			r.pos++
			r.replace(repair, start, r.pos, `\"`)
		case c == '\n' || c == '\r' || c == '\t':
			r.pos++
			r.replace(rawNewline, start, r.pos, map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}[c])
		case c < ' ':
			return r.fail(BadString, `control character in a string: write it as \u00XX`)
		default:
			r.pos += size
		}
	}
	return r.truncated()
}

// plain reads a string in double quotes up to its end if nothing in it needs a decision.
func (r *reader) plain() bool {
	for i := r.pos + 1; i < len(r.s); i++ {
		switch c := r.s[i]; {
		case c == '"':
			r.pos = i + 1
			return true
		case c == '\\' || c < ' ' || c >= utf8.RuneSelf:
			return false
		}
	}
	return false
}

// bound reads the quote that begins or ends a string.
func (r *reader) bound(kind quoting, repair set) {
	start := r.pos
	if kind == double || kind == single {
		r.pos++
	} else {
		_, size := utf8.DecodeRuneInString(r.s[r.pos:])
		r.pos += size
	}
	if kind != double {
		r.replace(repair, start, r.pos, `"`)
	}
}

// ends reports whether c ends a string of a kind.
func ends(kind quoting, c rune) bool {
	switch kind {
	case double:
		return c == '"'
	case single:
		return c == '\''
	default:
		return smartQuote(c) == kind
	}
}

// escape reads an escape. Only the escapes of JSON and \' have one meaning everywhere.
func (r *reader) escape(kind quoting) *Error {
	start := r.pos
	if r.pos+1 >= len(r.s) {
		return r.truncated()
	}
	switch c := r.s[r.pos+1]; c {
	case '"', '\\', '/', 'n', 'r', 't':
		r.pos += 2
	case 'b', 'f':
		r.pos += 2
		r.suspects = r.suspects || r.pos < len(r.s) && isLetter(r.s[r.pos])
	case '\'':
		r.pos += 2
		repair := escapedApostrophe
		if kind == single {
			repair = singleQuotes // which need it
		}
		r.replace(repair, start, r.pos, "'")
	case 'u':
		const digits = 4
		hex := r.s[r.pos+2 : min(r.pos+2+digits, len(r.s))]
		if n := strings.IndexFunc(hex, notHex); n >= 0 {
			return r.fail(BadString, `expected four hex digits after \u`)
		}
		if len(hex) < digits {
			return r.truncated()
		}
		r.pos += 2 + digits
	default:
		return r.fail(BadString, `unknown escape: write a backslash as \\, and no other escapes than \" \\ \/ \b \f \n \r \t \u`)
	}
	return nil
}

// hasSuspectEscape reports whether JSON has \f or \b before a letter in a string.
func hasSuspectEscape(text string) bool {
	for i := 0; ; i += 2 {
		n := strings.IndexByte(text[min(i, len(text)):], '\\')
		if n < 0 {
			return false
		}
		i += n
		if len(text) > i+2 && (text[i+1] == 'b' || text[i+1] == 'f') && isLetter(text[i+2]) {
			return true
		}
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func notHex(c rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", c) }
