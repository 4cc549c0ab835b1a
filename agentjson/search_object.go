package agentjson

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// object reads the object at the current offset: strictly if it is JSON, else leniently.
func (s *search) object() *Error {
	start := s.at
	if escapedQuote(s.text[start+1:]) {
		return s.escaped()
	}
	if value, n, err := events.DecodePrefix(s.text[start:]); err == nil {
		text := s.text[start : start+n]
		object, _ := value.(map[string]any) // it begins with a brace
		s.work += n
		return s.add(candidate{at: start, json: text, object: object, suspects: hasSuspectEscape(text)}, start+n)
	}
	r := &reader{s: s.text, pos: start, from: start}
	if err := r.object(); err != nil {
		return s.unreadable(r, err, '{')
	}
	return s.addRead(r, start, r.pos, 0)
}

// addRead adds the object that was read from start to end. The strict decoder has the last word.
func (s *search) addRead(r *reader, start, end int, around set) *Error {
	c := candidate{at: start, json: r.json(end), repairs: r.repairs, around: around, suspects: r.suspects}
	s.work += 2 * (r.pos - s.at)
	value, n, err := events.DecodePrefix(c.json)
	if err != nil || n < len(c.json) {
		return s.unreadable(r, s.refused(err, r, start), '{')
	}
	c.object, _ = value.(map[string]any) // it begins with a brace
	return s.add(c, r.pos)
}

// add adds an object that ends at an offset.
func (s *search) add(c candidate, end int) *Error {
	if s.goesOn(end) {
		return s.fail(BadSyntax, end, "the text continues as if the object were not closed: there is one closing bracket too many before this place")
	}
	c.before = s.others
	if s.inner {
		c.at, c.around = s.base, c.around|encoded
	}
	s.choice.add(c, s.options.Fits)
	s.at = end
	return nil
}

// goesOn reports whether the text continues at an offset with a comma, a name in quotes and a colon, after any number of closing brackets.
func (s *search) goesOn(at int) bool {
	r := reader{s: s.text, pos: at, dry: true}
	r.blanks()
	for r.next('}') || r.next(']') {
		r.blanks()
	}
	if !r.next(',') && !r.nextString(wideComma) {
		return false
	}
	r.blanks()
	ok := r.quote() != noQuote && r.str() == nil
	r.blanks()
	s.work += r.pos - at
	return ok && (r.next(':') || r.nextString(wideColon))
}

// refused makes the error of an object that the strict decoder refuses.
func (s *search) refused(err error, r *reader, start int) *Error {
	var problem *events.SyntaxError
	if !errors.As(err, &problem) {
		return s.fail(BadSyntax, start, err.Error())
	}
	code := codeOf(problem)
	at := start
	if r.out == nil {
		at += int(problem.Offset)
	}
	message := problem.Reason
	if problem.Pointer != "" {
		message = fmt.Sprintf("%.200q: %s", problem.Pointer, problem.Reason)
	}
	e := s.fail(code, at, message)
	e.meant = true
	return e
}

// codeOf returns the code for what the strict decoder refuses in JSON.
func codeOf(problem *events.SyntaxError) Code {
	for _, known := range []struct {
		part string
		code Code
	}{{"duplicate key", DuplicateKey}, {"nested more", TooDeep}, {" values:", TooMany}, {"surrogate", BadString}, {"UTF-8", BadString}} {
		if strings.Contains(problem.Reason, known.part) {
			return known.code
		}
	}
	return BadNumber
}

// unreadable passes the object or list at the current offset, which could not be read, with all that is in it. It returns an
// error if it is not known where that ends, or if the object is meant and no other may be taken for it.
func (s *search) unreadable(r *reader, err *Error, open byte) *Error {
	start := s.at
	s.work += max(0, r.pos-start)
	end := -1
	if err.Code != Truncated && !err.isFinal() {
		end = closing(s.text, start)
		s.work += max(0, end-start)
	}
	switch {
	case end >= err.Offset:
		if s.resume(start, end) {
			return nil
		}
		if s.broken == nil && !err.prose {
			s.broken = err
		}
		s.others++
		s.at = end
		return nil
	case s.resume(start, len(s.text)):
		return nil
	case end >= 0, err.isFinal(), err.Code == Truncated, err.Code == BadString:
		return err
	case open == '[':
		return s.fail(Truncated, start, "the text ends inside the list that starts here: send all of it")
	default:
		return s.fail(Truncated, start, "the text ends inside the object that starts here: send all of it")
	}
}

// closing returns the offset after the bracket that closes the one at text[at], -1 if there is none. Brackets in double
// quotes do not count.
func closing(text string, at int) int {
	const toClosing = 2 // in ASCII, from [ to ] and from { to }
	open, depth := text[at], 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case open:
			depth++
		case open + toClosing:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
