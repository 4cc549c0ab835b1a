package events

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// The strict decoder: one recursive descent over the text of a document, which refuses what other readers would
// take differently (a key twice, a lone surrogate, a number out of bounds). json_literal.go reads strings and
// numbers, json_limits.go has the bounds.

// Decode reads exactly one JSON document into a value tree: nil, bool, string, [json.Number]
// with the spelling of the document, []any, map[string]any.
//
// It is stricter than encoding/json, so that two readers never see two meanings: duplicate
// keys, invalid UTF-8, lone surrogates, trailing bytes and anything beyond [MaxDepth],
// [MaxNodes], [MaxNumberChars] and [MaxExponent] is a *[SyntaxError]. The tree shares memory
// with a private copy of data; clone a string that outlives the rest.
func Decode(data []byte) (any, error) {
	p := parser{s: string(data)}
	return p.document()
}

// DecodePrefix is [Decode] for the document that text begins with, whatever follows it. It returns its length in
// bytes. The tree shares memory with text.
func DecodePrefix(text string) (v any, length int, err error) {
	p := parser{s: text}
	v, problem := p.value()
	if problem != nil {
		return nil, 0, problem
	}
	return v, p.pos, nil
}

// document reads the one document. Afterwards the parser knows how many containers the deepest
// value lies in, and how many values there are.
func (p *parser) document() (any, error) {
	v, problem := p.value()
	if problem == nil {
		if p.space(); p.pos < len(p.s) {
			problem = p.fail("more bytes after the document: send one document a message")
		}
	}
	if problem != nil {
		return nil, problem
	}
	return v, nil
}

// parser is a recursive-descent JSON parser; its recursion is bounded by MaxDepth.
type parser struct {
	s              string
	pos            int
	depth, deepest int
	nodes          int // values so far, including the event that the document will be part of

	lenient bool // see [Addressee]

	loose         int       // what the document has had so far that canonical JSON has not
	path          [2]string // keys of the members at hand in the outermost object and one in it
	canonicalData [2]string // structured_data of the outermost object, and of data in it, as far as they are canonical
}

type member struct {
	key   string
	value any
	pos   int // of the key
}

func (p *parser) value() (any, *SyntaxError) {
	p.space()
	if p.lenient && p.skip() {
		return unreadable{}, nil
	}
	if p.pos >= len(p.s) {
		return nil, p.fail("the document ends where a value is expected")
	}
	if p.nodes++; p.nodes > MaxNodes {
		return nil, p.fail(fmt.Sprintf("more than %d values: store the data elsewhere and send a reference", MaxNodes))
	}
	switch c := p.s[p.pos]; c {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		s, problem := p.str()
		return s, problem
	case 't':
		return p.literal("true", true)
	case 'f':
		return p.literal("false", false)
	case 'n':
		return p.literal("null", nil)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		n, reason := scanNumber(p.s[p.pos:])
		if reason != "" {
			return nil, p.failAt(p.pos+n, reason)
		}
		p.pos += n
		return json.Number(p.s[p.pos-n : p.pos]), nil
	default:
		return nil, p.fail(fmt.Sprintf("byte 0x%02x cannot start a value: expected JSON", c))
	}
}

func (p *parser) object() (any, *SyntaxError) {
	if problem := p.enter(); problem != nil {
		return nil, problem
	}
	if p.next('}') {
		p.depth--
		return map[string]any{}, nil
	}
	const usual = 24 // members of a usual object are collected off the heap
	members := make([]member, 0, usual)
	last := "" // key
	for {
		p.space()
		at := p.pos
		if at >= len(p.s) || p.s[at] != '"' {
			return nil, p.fail("expected a key in double quotes")
		}
		key, problem := p.str()
		if problem != nil {
			p.pos = at
			if !p.lenient || !p.skip() {
				return nil, problem
			}
			key = p.s[at+1 : p.pos-1] // as it is written, which equals no known name
		}
		if !p.next(':') {
			return nil, p.fail("expected ':' after a key")
		}
		if key < last {
			p.loose++
		}
		last = key
		if p.depth <= len(p.path) {
			p.path[p.depth-1] = key
		}
		begin, loose := p.pos, p.loose
		v, problem := p.value()
		if problem != nil {
			return nil, problem.under(key)
		}
		members = append(members, member{key, v, at})
		if p.loose == loose && p.depth <= len(p.path) {
			p.canonical(key, begin)
		}
		if p.next(',') {
			continue
		}
		if !p.next('}') {
			return nil, p.fail("expected ',' or '}' in an object")
		}
		p.depth--
		return p.collect(members)
	}
}

// canonical notes that the value of key, which has just been read, is canonical JSON.
func (p *parser) canonical(key string, begin int) {
	if key == "structured_data" && (p.depth == 1 || p.path[0] == "data") {
		p.canonicalData[p.depth-1] = p.s[begin:p.pos]
	}
}

// collect makes the map of an object that has been read.
func (p *parser) collect(members []member) (any, *SyntaxError) {
	m := make(map[string]any, len(members))
	for i, e := range members {
		if _, twice := m[e.key]; twice && p.lenient {
			m[e.key] = unreadable{}
			continue
		}
		if m[e.key] = e.value; len(m) <= i && !p.lenient {
			return nil, p.failAt(e.pos, "duplicate key: send each key once").under(e.key)
		}
	}
	return m, nil
}

func (p *parser) array() (any, *SyntaxError) {
	if problem := p.enter(); problem != nil {
		return nil, problem
	}
	if p.next(']') {
		p.depth--
		return []any{}, nil
	}
	const usual = 4 // saves small lists from growing three times
	a := make([]any, 0, usual)
	for {
		v, problem := p.value()
		if problem != nil {
			return nil, problem.under(strconv.Itoa(len(a)))
		}
		a = append(a, v)
		if p.next(',') {
			continue
		}
		if !p.next(']') {
			return nil, p.fail("expected ',' or ']' in an array")
		}
		p.depth--
		return a, nil
	}
}

// enter steps over the opening byte of a container.
func (p *parser) enter() *SyntaxError {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(fmt.Sprintf("nested more than %d deep: flatten the data", MaxDepth))
	}
	p.deepest = max(p.deepest, p.depth)
	p.pos++
	return nil
}

// next skips white space and then c, and reports whether c was there.
func (p *parser) next(c byte) bool {
	p.space()
	if p.pos < len(p.s) && p.s[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) space() {
	for p.pos < len(p.s) {
		switch p.s[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
			p.loose++
		default:
			return
		}
	}
}

func (p *parser) literal(word string, v any) (any, *SyntaxError) {
	if end := p.pos + len(word); end <= len(p.s) && p.s[p.pos:end] == word {
		p.pos = end
		return v, nil
	}
	return nil, p.fail("expected " + word)
}

// str reads a string. One without escapes is a slice of the document.
func (p *parser) str() (string, *SyntaxError) {
	start := p.pos + 1
	escaped, wide := false, false
	for i := start; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == '"':
			raw := p.s[start:i]
			if wide && !utf8.ValidString(raw) {
				return "", p.failAt(start+invalidUTF8(raw), "invalid UTF-8: send UTF-8")
			}
			p.pos = i + 1
			if escaped {
				return p.unescape(raw, start)
			}
			return raw, nil
		case c == '\\':
			escaped = true
			i++ // whatever follows does not end the string; unescape judges it
		case c < ' ':
			return "", p.failAt(i, `control character in a string: write it as \u00XX`)
		case c >= utf8.RuneSelf:
			wide = true
		}
	}
	return "", p.failAt(len(p.s), "the document ends inside a string")
}

func (p *parser) fail(reason string) *SyntaxError { return p.failAt(p.pos, reason) }

func (p *parser) failAt(pos int, reason string) *SyntaxError {
	return &SyntaxError{Offset: int64(pos), Reason: reason}
}
