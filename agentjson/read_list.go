package agentjson

// list reads the list at pos.
func (r *reader) list() *Error {
	if err := r.enter(); err != nil {
		return err
	}
	var last byte // the first byte of the last element
	for first := true; ; first = false {
		r.space()
		if r.next(']') {
			r.depth--
			return nil
		}
		if !first {
			if ended, err := r.listSeparator(last); err != nil {
				return err
			} else if ended {
				continue
			}
		}
		if r.pos < len(r.s) {
			last = r.s[r.pos]
		}
		if err := r.value(); err != nil {
			return err
		}
	}
}

// listSeparator reads what is between two elements, and reports whether the list ends after it.
func (r *reader) listSeparator(last byte) (ended bool, err *Error) {
	switch comma := r.pos; {
	case r.comma():
		return r.endsAfter(comma, ']'), nil
	case r.pos >= len(r.s):
		return false, r.truncated()
	case last == '{' && r.at('{'):
		r.replace(missingComma, r.pos, r.pos, ",")
		return false, nil
	case last == '"' && r.atText():
		return false, r.fail(BadString, `expected ',' or ']' after the text: write a quote within a text as \"`)
	default:
		return false, r.fail(BadSyntax, "expected ',' or ']'")
	}
}

// endOfOne reads what ends a list after its only element.
func (r *reader) endOfOne() bool {
	tail := reader{s: r.s, pos: r.pos, dry: true}
	tail.space()
	if comma := tail.pos; tail.comma() {
		tail.endsAfter(comma, ']')
	}
	ended := tail.next(']')
	r.pos = tail.pos
	if ended {
		r.repairs.add(tail.repairs)
	}
	return ended
}
