package agentjson

import (
	"strings"

	"github.com/oneturn/oneturn/events"
)

// An object may be encoded as a JSON string, with its quotes or without. One level of that is removed.

const encodedTwice = "the object is encoded as a string twice: send the object itself"

// encoded reads the text as one JSON string, or passes a quote that does not begin one.
func (s *search) encoded() *Error {
	r := reader{s: s.text, pos: s.at, from: s.at}
	broken := r.str()
	s.work += r.pos - s.at
	if broken == nil && strings.TrimLeft(s.text[r.pos:], " \t\r\n`~") == "" {
		if s.inner {
			return s.fail(NotAnObject, s.at, encodedTwice)
		}
		if value, _, err := events.DecodePrefix(r.json(r.pos)); err == nil {
			text, _ := value.(string) // it is in quotes
			return s.within(text, len(s.text))
		}
	}
	s.prose(1)
	return nil
}

// escapedQuote reports whether s begins with \", after white space that may be escaped as well.
func escapedQuote(s string) bool {
	for {
		s = strings.TrimLeft(s, " \t\r\n")
		if len(s) < 2 || s[0] != '\\' {
			return false
		}
		switch s[1] {
		case '"':
			return true
		case 'n', 'r', 't':
			s = s[2:]
		default:
			return false
		}
	}
}

// escaped reads an object all of whose quotes are escaped: the text is the inside of a string.
func (s *search) escaped() *Error {
	start := s.at
	end := strings.LastIndexByte(s.text, '}') + 1
	s.work += len(s.text) - start
	if s.inner {
		return s.fail(NotAnObject, start, encodedTwice)
	}
	if end <= start {
		return s.fail(Truncated, start, "the text ends inside the object that starts here: send all of it")
	}
	quoted := reader{s: `"` + s.text[start:end] + `"`}
	if quoted.str() == nil && quoted.pos == len(quoted.s) {
		if value, _, err := events.DecodePrefix(quoted.json(quoted.pos)); err == nil {
			text, _ := value.(string) // it is in quotes
			return s.within(text, end)
		}
	}
	return s.fail(BadSyntax, start, `some quotes are escaped and some are not: write \" only inside strings`)
}

// within searches the text that a string up to end encodes. Places in it are reported as the place of the string.
func (s *search) within(text string, end int) *Error {
	in := search{text: text, options: s.options, inner: true, base: s.at, choice: s.choice, broken: s.broken, lead: s.lead, others: s.others}
	if err := in.pass(); err != nil {
		err.Offset = s.at
		return err
	}
	if in.broken != nil && in.broken != s.broken {
		in.broken.Offset = s.at
	}
	s.choice, s.broken, s.lead, s.others = in.choice, in.broken, in.lead, in.others
	s.isList = s.isList || in.isList
	s.around.add(in.around)
	s.work += in.work
	s.at = end
	return nil
}
