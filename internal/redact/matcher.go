package redact

// matcher finds many patterns in one pass over a text, however they overlap (Aho and Corasick).
type matcher struct {
	nodes []node
	root  [256]int32 // children of the empty prefix, where most bytes of a text lead back to
}

// node is a prefix of a pattern.
type node struct {
	first, next int32 // first child, next sibling
	fail        int32 // the longest other node that this one ends with
	depth       int32
	match       int32 // length of the longest pattern that this prefix ends with
	char        byte
}

// newMatcher returns the matcher of some patterns.
func newMatcher(patterns map[string]struct{}) *matcher {
	m := &matcher{nodes: make([]node, 1)}
	for p := range patterns {
		m.add(p)
	}
	m.link()
	return m
}

func (m *matcher) add(pattern string) {
	at := int32(0)
	for i := range len(pattern) {
		to := m.child(at, pattern[i])
		if to == 0 {
			to = int32(len(m.nodes))
			m.nodes = append(m.nodes, node{next: m.nodes[at].first, char: pattern[i], depth: int32(i + 1)})
			m.nodes[at].first = to
			if at == 0 {
				m.root[pattern[i]] = to
			}
		}
		at = to
	}
	m.nodes[at].match = int32(len(pattern))
}

// link finds the state to continue with when a pattern does not match any more, level by level.
func (m *matcher) link() {
	queue := make([]int32, 0, len(m.nodes))
	queue = append(queue, 0)
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for c := m.nodes[at].first; c != 0; c = m.nodes[c].next {
			queue = append(queue, c)
			if at != 0 {
				m.nodes[c].fail = m.step(m.nodes[at].fail, m.nodes[c].char)
			}
			m.nodes[c].match = max(m.nodes[c].match, m.nodes[m.nodes[c].fail].match)
		}
	}
}

func (m *matcher) child(at int32, char byte) int32 {
	if at == 0 {
		return m.root[char]
	}
	c := m.nodes[at].first
	for c != 0 && m.nodes[c].char != char {
		c = m.nodes[c].next
	}
	return c
}

// step reads one byte.
func (m *matcher) step(at int32, char byte) int32 {
	for {
		if c := m.child(at, char); c != 0 {
			return c
		}
		if at == 0 {
			return 0
		}
		at = m.nodes[at].fail
	}
}

// find appends where patterns of at least so many bytes are in a view. If the text was cut, the
// beginning of a pattern at its end counts from [Shortest] bytes on.
func (m *matcher) find(found []span, v view, cut bool, least int) []span {
	state := int32(0)
	for i, c := range v.text {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		state = m.step(state, c)
		if n := int(m.nodes[state].match); n >= least && n > 0 {
			found = joined(found, v.origin(i+1-n, i+1))
		}
	}
	if n := int(m.nodes[state].depth); cut && n >= max(least, Shortest) {
		found = joined(found, v.origin(len(v.text)-n, len(v.text)))
	}
	return found
}

// joined appends a span, to the last one if they overlap: a text of nothing but secrets costs no
// more memory than another.
func joined(found []span, s span) []span {
	if last := len(found) - 1; last >= 0 && s.from >= found[last].from && s.from <= found[last].to {
		found[last].to = max(found[last].to, s.to)
		return found
	}
	return append(found, s)
}
