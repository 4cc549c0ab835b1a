package events

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The parts of the decoder that read one literal: escapes of strings, numbers and the bounds of both. They return
// the offset and the reason of an error; decode.go adds the path.

// unescape resolves the escapes of a string that starts at byte offset at of the document.
func (p *parser) unescape(raw string, at int) (string, *SyntaxError) {
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		n := strings.IndexByte(raw[i:], '\\')
		if n < 0 {
			b = append(b, raw[i:]...)
			break
		}
		b = append(b, raw[i:i+n]...)
		i += n
		r, width, reason := unescapeRune(raw[i:])
		if reason != "" {
			return "", p.failAt(at+i, reason)
		}
		if !canonicalEscape(r, raw[i:i+width]) {
			p.loose++
		}
		b = utf8.AppendRune(b, r)
		i += width
	}
	return string(b), nil
}

// unescapeRune reads the escape at the start of s, which is a backslash and at least one
// byte, and returns its length; a surrogate pair is one escape of 12 bytes.
func unescapeRune(s string) (r rune, width int, reason string) {
	const short, long, pair = 2, 6, 12
	switch s[1] {
	case '"', '\\', '/':
		return rune(s[1]), short, ""
	case 'b':
		return '\b', short, ""
	case 'f':
		return '\f', short, ""
	case 'n':
		return '\n', short, ""
	case 'r':
		return '\r', short, ""
	case 't':
		return '\t', short, ""
	case 'u':
		r, ok := hexRune(s)
		if !ok {
			return 0, 0, `expected four hex digits after \u`
		}
		if !utf16.IsSurrogate(r) {
			return r, long, ""
		}
		if low, ok := hexRune(s[long:]); ok {
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				return r, pair, ""
			}
		}
		return 0, 0, "lone surrogate: send both halves of the pair, or the character itself"
	default:
		return 0, 0, `unknown escape: expected one of \" \\ \/ \b \f \n \r \t \u`
	}
}

// canonicalEscape reports whether [AppendJSON] writes r as this escape.
func canonicalEscape(r rune, escape string) bool {
	const short = 2
	if len(escape) == short {
		return r != '/'
	}
	return r < ' ' && !strings.ContainsRune("\b\f\n\r\t", r) && escape == strings.ToLower(escape)
}

// hexRune reads \uXXXX at the start of s.
func hexRune(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// scanNumber returns the length of the number literal at the start of s. If there is none
// that the limits allow, it returns the place of the error and the reason.
func scanNumber(s string) (n int, reason string) {
	if n < len(s) && s[n] == '-' {
		n++
	}
	whole := digits(s[n:])
	switch {
	case whole == 0:
		return n, "expected a digit"
	case s[n] == '0':
		n++ // no digit may follow; what does is not part of the number
	default:
		n += whole
	}
	if n < len(s) && s[n] == '.' {
		n++
		fraction := digits(s[n:])
		if fraction == 0 {
			return n, "expected a digit after '.'"
		}
		n += fraction
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		n++
		if n < len(s) && (s[n] == '+' || s[n] == '-') {
			n++
		}
		size := digits(s[n:])
		if size == 0 {
			return n, "expected a digit in the exponent"
		}
		if !smallExponent(s[n : n+size]) {
			return n, "exponent over " + strconv.Itoa(MaxExponent) + ": send the number as a string"
		}
		n += size
		if n <= MaxNumberChars && !isDouble(s[:n]) {
			return 0, "a number beyond the range of doubles: send it as a string"
		}
	}
	if n > MaxNumberChars {
		return 0, "number of more than " + strconv.Itoa(MaxNumberChars) + " characters: send it as a string"
	}
	return n, ""
}

func smallExponent(digits string) bool {
	e, err := strconv.Atoi(digits)
	return err == nil && e <= MaxExponent
}

// isDouble reports whether a reader that knows doubles only can hold a number.
func isDouble(literal string) bool {
	_, err := strconv.ParseFloat(literal, 64)
	return err == nil
}

// digits counts the decimal digits at the start of s.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// invalidUTF8 returns the offset of the first byte of s that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	for i, r := range s {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
			return i
		}
	}
	return -1
}
