package agentjson

import (
	"strings"
	"unicode/utf8"
)

// The separators of Chinese texts.
const (
	wideComma = "，"
	wideColon = "："
)

// object reads the object at pos.
func (r *reader) object() *Error {
	if err := r.enter(); err != nil {
		return err
	}
	r.objects++
	for first, wasString := true, false; ; first = false {
		r.space()
		if r.next('}') {
			r.depth--
			return nil
		}
		if !first {
			if ended, err := r.separator(wasString); err != nil {
				return err
			} else if ended {
				continue
			}
		}
		var err *Error
		if wasString, err = r.member(); err != nil {
			err.prose = err.prose && first
			return err
		}
	}
}

// separator reads what is between two members, and reports whether the object ends after it.
func (r *reader) separator(wasString bool) (ended bool, err *Error) {
	switch comma := r.pos; {
	case r.comma():
		return r.endsAfter(comma, '}'), nil
	case r.missingComma():
		return false, nil
	case r.pos >= len(r.s):
		return false, r.truncated()
	case wasString && r.atText():
		return false, r.fail(BadString, `expected ',' or '}' after the text: write a quote within a text as \"`)
	default:
		return false, r.fail(BadSyntax, "expected ',' or '}'")
	}
}

// comma reads a comma.
func (r *reader) comma() bool {
	start := r.pos
	if r.next(',') {
		return true
	}
	if r.nextString(wideComma) {
		r.replace(fullWidth, start, r.pos, ",")
		return true
	}
	return false
}

// endsAfter reports whether a closing bracket follows a comma that was just read, which is dropped then.
func (r *reader) endsAfter(comma int, bracket byte) bool {
	end := r.pos
	if r.space(); !r.at(bracket) {
		return false
	}
	r.dropComma(comma, end)
	return true
}

// missingComma reports whether white space and then a name with a colon are here: there is one reading.
func (r *reader) missingComma() bool {
	if !isSpaceBefore(r.s[:r.pos]) {
		return false
	}
	ahead := reader{s: r.s, pos: r.pos, dry: true}
	if ahead.key() != nil {
		return false
	}
	if ahead.space(); !ahead.next(':') && !ahead.nextString(wideColon) {
		return false
	}
	r.replace(missingComma, r.pos, r.pos, ",")
	return true
}

// member reads a name, a colon and a value, and reports whether that is a string.
func (r *reader) member() (isString bool, err *Error) {
	if err := r.key(); err != nil {
		return false, err
	}
	r.space()
	switch colon := r.pos; {
	case r.next(':'):
	case r.nextString(wideColon):
		r.replace(fullWidth, colon, r.pos, ":")
	case r.pos >= len(r.s):
		return false, r.truncated()
	case r.atText() && r.s[r.pos-1] == '"':
		return false, r.fail(BadString, `expected ':' after a name: close the name with a quote, and write a quote within a text as \"`)
	default:
		return false, r.fail(BadSyntax, "expected ':' after a name")
	}
	r.space()
	isString = r.quote() != noQuote
	if err = r.value(); err != nil {
		err.prose = false // the name was read
	}
	return isString, err
}

// key reads the name of a member.
func (r *reader) key() *Error {
	if r.pos >= len(r.s) {
		return r.truncated()
	}
	if r.quote() != noQuote {
		return r.str()
	}
	if err := r.elided(); err != nil {
		return err
	}
	start := r.pos
	for r.pos < len(r.s) {
		c, size := utf8.DecodeRuneInString(r.s[r.pos:])
		if !isNamePart(c) || r.pos == start && isDigit(c) {
			break
		}
		r.pos += size
	}
	if r.pos == start {
		err := r.fail(BadSyntax, "expected a name in double quotes")
		err.prose = strings.IndexByte("{,", r.s[r.pos]) < 0 // {{ is a template's way to write {
		return err
	}
	name := r.s[start:r.pos]
	_, isPython := pythonLiteralOf(name)
	ahead := reader{s: r.s, pos: r.pos, dry: true}
	switch ahead.space(); {
	case ahead.pos >= len(r.s):
		return r.truncated()
	case !ahead.next(':') && !ahead.nextString(wideColon):
		r.pos = start
		err := r.fail(BadSyntax, "expected a name in double quotes")
		err.prose = true
		return err
	case isPython:
		r.pos = start
		return r.fail(BadSyntax, "True, False and None as names have two readings: write the name in double quotes")
	default:
		r.replace(unquotedKey, start, r.pos, `"`+name+`"`)
		return nil
	}
}
