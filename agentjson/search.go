package agentjson

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The way through a text: prose is passed byte by byte, an object or a list of objects is read. What cannot be read
// is passed with all that is in it, so that each byte is read a fixed number of times at most, in any text.

// search is one way through one text.
type search struct {
	text    string
	options Options
	inner   bool // the text is the content of a string
	base    int  // the place of that string
	at      int
	listed  int // the end of the last attempt to read a list

	choice choice // among the objects
	broken *Error // the first object that could not be read
	isList bool   // the text is a list without objects

	around set    // fence, think, bom
	lead   []byte // the first bytes of prose
	others int    // pieces of prose and of other JSON
	fenced bool   // between two fences

	work int // bytes looked at by anything but the loop of run, for tests
}

// run returns the object of the text, or the error that ends the search.
func (s *search) run() (Found, *Error) {
	if err := s.pass(); err != nil {
		return Found{}, err
	}
	c, err := s.choose()
	if err != nil {
		return Found{}, err
	}
	return s.found(c), nil
}

// pass goes through the text.
func (s *search) pass() *Error {
	for s.at < len(s.text) {
		c := s.text[s.at]
		if mayBeMark(c) {
			if passed, err := s.reasoning(); err != nil {
				return err
			} else if passed {
				continue
			}
		}
		var err *Error
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			s.at++
		case c == '{':
			err = s.object()
		case c == '[':
			err = s.list()
		case c == '}' && s.broken != nil:
			return s.broken // what was passed as broken had not ended: the rest is part of it
		case (c == '`' || c == '~') && isFence(s.text[s.at:]):
			s.fence(c)
		case c == '"' && s.atStart():
			err = s.encoded()
		case c >= utf8.RuneSelf:
			s.rune()
		default:
			s.prose(1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// atStart reports whether only fences, reasoning and white space were passed.
func (s *search) atStart() bool { return s.others == 0 && s.choice.n == 0 }

// prose passes n bytes.
func (s *search) prose(n int) {
	const enough = len("json") + 1 // to distinguish it from any other text
	if len(s.lead) < enough {
		s.lead = append(s.lead, s.text[s.at])
	}
	s.others++
	s.at += n
}

// rune passes a character beyond ASCII: white space of any kind, or prose.
func (s *search) rune() {
	r, size := utf8.DecodeRuneInString(s.text[s.at:])
	switch {
	case r == byteOrderMark && s.at == 0:
		s.around.add(bom)
		s.at += size
	case unicode.IsSpace(r):
		s.at += size
	default:
		s.prose(size)
	}
}

func isFence(s string) bool { return strings.HasPrefix(s, "```") || strings.HasPrefix(s, "~~~") }

// fence passes a fence, and the language after an opening one.
func (s *search) fence(mark byte) {
	s.around.add(fence)
	for s.at < len(s.text) && s.text[s.at] == mark {
		s.at++
	}
	if s.fenced = !s.fenced; !s.fenced {
		return
	}
	rest := strings.TrimLeft(s.text[s.at:], " \t")
	language := 0
	for language < len(rest) && isLanguage(rest[language]) {
		language++
	}
	if after := strings.TrimLeft(rest[language:], " \t"); after == "" || strings.IndexByte("\r\n{[`~", after[0]) >= 0 {
		s.at = len(s.text) - len(after)
	}
}

func isLanguage(c byte) bool {
	return c < utf8.RuneSelf && isNamePart(rune(c)) || strings.IndexByte("+-.#", c) >= 0
}

func (s *search) fail(code Code, at int, message string) *Error {
	return &Error{Code: code, Offset: at, Message: message}
}
