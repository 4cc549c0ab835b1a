package agentjson

import "strings"

// list reads a list at the current offset. One object in a list stands for the object; a list of several values is
// broken if it has objects. Other brackets are prose, as in "[1]" or "[see below".
func (s *search) list() *Error {
	start := s.at
	isObjects := strings.HasPrefix(strings.TrimLeft(s.text[start+1:], " \t\r\n"), "{")
	if !isObjects && start < s.listed {
		s.prose(1) // what is in brackets that are prose has been looked at
		return nil
	}
	one := reader{s: s.text, pos: start + 1, dry: true}
	one.space()
	s.work += one.pos - start
	if one.at('{') {
		element := &reader{s: s.text, pos: one.pos, from: one.pos, depth: 1, repairs: one.repairs}
		if element.object() == nil {
			if end := element.pos; element.endOfOne() {
				return s.addRead(element, one.pos, end, list)
			}
		}
		s.work += element.pos - start
	}
	r := &reader{s: s.text, pos: start, from: start}
	if broken := r.list(); broken != nil {
		if isObjects || broken.Code == Truncated && r.objects > 0 {
			return s.unreadable(r, broken, '[')
		}
		s.work += r.pos - start
		s.listed = max(s.listed, one.pos, r.pos)
		s.prose(1)
		return nil
	}
	s.work += r.pos - start
	switch {
	case r.objects == 0:
		s.isList = s.isList || s.atStart()
	case s.broken == nil:
		s.broken = s.fail(NotAnObject, start, "a list of several values: send one object")
	}
	s.others++
	s.at = r.pos
	return nil
}
