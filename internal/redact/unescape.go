package redact

import (
	"bytes"
	"html"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A view is a text after some rounds of unescaping that remembers which bytes of the original each of its bytes comes
// from, so that a match in the view is replaced in the original.

// view is a text as it reads once something was undone, and where each of its bytes comes from.
type view struct {
	text     []byte
	from, to []int32 // the stretch of the original text that a byte comes from; nil if the view is that text
	round    int     // of unescaping
}

func viewOf(text string) view { return view{text: []byte(text)} }

// origin gives the stretch of the original text that bytes i to j of the view come from.
func (v *view) origin(i, j int) span {
	if v.from == nil {
		return span{i, j}
	}
	return span{int(v.from[i]), int(v.to[j-1])}
}

// builder makes a view of another one.
type builder struct {
	of   *view
	made view
}

func build(of *view, round int) *builder {
	size := len(of.text)
	return &builder{of, view{text: make([]byte, 0, size), from: make([]int32, 0, size), to: make([]int32, 0, size), round: round}}
}

// put adds bytes that stand for those from i to j of the other view.
func (b *builder) put(i, j int, decoded ...byte) {
	at := b.of.origin(i, j)
	for _, c := range decoded {
		b.made.text = append(b.made.text, c)
		b.made.from, b.made.to = append(b.made.from, int32(at.from)), append(b.made.to, int32(at.to))
	}
}

// unbroken is the view without white space. broken reports whether it has any.
func (v *view) unbroken() (_ view, broken bool) {
	if !bytes.ContainsAny(v.text, " \t\r\n") {
		return view{}, false
	}
	b := build(v, v.round)
	for i, c := range v.text {
		if !blank(c) {
			b.put(i, i+1, c)
		}
	}
	return b.made, true
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// unescape undoes one round of percent-encoding, backslashes and HTML entities. more reports
// whether that made another view.
func (v *view) unescape() (_ view, more bool) {
	if v.round == rounds || !bytes.ContainsAny(v.text, `%\&`) {
		return view{}, false
	}
	b := build(v, v.round+1)
	for i := 0; i < len(v.text); {
		n, decoded := escape(v.text[i:])
		if n == 0 {
			b.put(i, i+1, v.text[i])
			i++
			continue
		}
		more = true
		b.put(i, i+n, decoded...)
		i += n
	}
	return b.made, more
}

// escape decodes the escape that text begins with, and returns its length, 0 if it is none.
func escape(text []byte) (n int, decoded []byte) {
	switch text[0] {
	case '%':
		if code, ok := hexadecimal(text, 1, 2); ok {
			return 3, []byte{byte(code)}
		}
	case '\\':
		return backslash(text)
	case '&':
		return entity(text)
	}
	return 0, nil
}

// backslash decodes what JSON, JavaScript, Python, Go and shells write with one.
func backslash(text []byte) (n int, decoded []byte) {
	if len(text) < 2 {
		return 0, nil
	}
	switch c := text[1]; c {
	case 'n':
		return 2, []byte{'\n'}
	case 't':
		return 2, []byte{'\t'}
	case 'r':
		return 2, []byte{'\r'}
	case 'u':
		return unicodeEscape(text)
	case 'U':
		if code, ok := hexadecimal(text, 2, 8); ok {
			return 10, utf8.AppendRune(nil, rune(code))
		}
	case 'x':
		if code, ok := hexadecimal(text, 2, 2); ok {
			return 4, []byte{byte(code)}
		}
	default:
		if c > ' ' && c < utf8.RuneSelf && !alphanumeric(c) {
			return 2, []byte{c}
		}
	}
	return 0, nil
}

// unicodeEscape decodes \uXXXX, and two of them that are the halves of one character.
func unicodeEscape(text []byte) (n int, decoded []byte) {
	const length = 6
	code, ok := hexadecimal(text, 2, 4)
	if !ok {
		return 0, nil
	}
	if utf16.IsSurrogate(rune(code)) && len(text) >= 2*length && text[length] == '\\' && text[length+1] == 'u' {
		if low, ok := hexadecimal(text, length+2, 4); ok {
			return 2 * length, utf8.AppendRune(nil, utf16.DecodeRune(rune(code), rune(low)))
		}
	}
	return length, utf8.AppendRune(nil, rune(code))
}

// entity decodes an HTML entity, by name or by number.
func entity(text []byte) (n int, decoded []byte) {
	const longest = 34 // bytes of a name of the standard
	end := bytes.IndexByte(text[:min(len(text), longest)], ';')
	if end < 2 {
		return 0, nil
	}
	escaped := string(text[:end+1])
	if plain := html.UnescapeString(escaped); plain != escaped {
		return end + 1, []byte(plain)
	}
	return 0, nil
}

// hexadecimal reads digits of text.
func hexadecimal(text []byte, at, digits int) (uint64, bool) {
	if len(text) < at+digits {
		return 0, false
	}
	code, err := strconv.ParseUint(string(text[at:at+digits]), 16, 32)
	return code, err == nil
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
