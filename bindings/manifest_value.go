package bindings

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// YAML and JSON are read into one tree of values that know their lines. All later readers use its methods, each of
// which takes an absent value (nil) too.

// Bounds of one manifest. A manifest is written by people; these are far above what they need.
const (
	maxNodes  = 100_000 // values in a manifest, aliases expanded
	maxText   = 4 << 20 // bytes of its texts, aliases expanded
	maxDepth  = 64      // nesting
	maxNumber = 64      // letters of a number
	maxExp    = 308     // magnitude of its exponent
)

type nodeKind int

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	textNode
	listNode
	mapNode
)

// node is one value of a manifest with its line. YAML and JSON are both read into it, so that
// all that follows knows one shape only. Every method works on a nil node, which is an absent
// value.
type node struct {
	kind  nodeKind
	line  int
	plain bool           // an unquoted YAML scalar
	text  string         // of texts and numbers; "true" or "false" of booleans
	keys  []string       // of maps, in the order of the file
	items []*node        // of lists, and of maps with keys
	index map[string]int // of maps with many keys, so that a hostile one costs no square
}

// manyKeys is the size from which a map gets an index.
const manyKeys = 16

// find returns the position of a key, -1 if there is none.
func (n *node) find(key string) int {
	if len(n.keys) < manyKeys {
		return slices.Index(n.keys, key)
	}
	if i, ok := n.index[key]; ok {
		return i
	}
	return -1
}

// get returns the value of a key, nil if there is none or n is not a map.
func (n *node) get(key string) *node {
	if n == nil || n.kind != mapNode {
		return nil
	}
	if i := n.find(key); i >= 0 {
		return n.items[i]
	}
	return nil
}

// first returns the value of the first key that is there and not null.
func (n *node) first(keys ...string) *node {
	for _, k := range keys {
		if v := n.get(k); !v.absent() {
			return v
		}
	}
	return nil
}

func (n *node) is(kind nodeKind) bool { return n != nil && n.kind == kind }

// absent reports whether the value is missing or null.
func (n *node) absent() bool { return n == nil || n.kind == nullNode }

// str returns a text without the blanks around it, in the form of names; "" for everything else.
func (n *node) str() string {
	if !n.is(textNode) {
		return ""
	}
	return events.Name(strings.TrimSpace(n.text))
}

// texts returns a text as a list of one, and the texts of a list.
func (n *node) texts() []string {
	if s := n.str(); s != "" {
		return []string{s}
	}
	if !n.is(listNode) {
		return nil
	}
	var all []string
	for _, item := range n.items {
		if s := item.str(); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// truth reads a boolean as people write it: true, yes, on, 1 and their opposites, since YAML
// 1.1 readers, MozaiksAI's among them, take these for booleans.
func (n *node) truth() (value, ok bool) {
	if n == nil {
		return false, false
	}
	switch n.kind {
	case boolNode, textNode, numberNode:
		switch strings.ToLower(strings.TrimSpace(n.text)) {
		case "true", "yes", "on", "y", "1":
			return true, true
		case "false", "no", "off", "n", "0":
			return false, true
		}
	case nullNode, listNode, mapNode:
	}
	return false, false
}

// shown is the value of a setting in an error: a text in quotes, a number as it is written, else what it is.
func (n *node) shown() string {
	switch {
	case n.absent():
		return "null"
	case n.is(textNode):
		return quoted(n.text)
	case n.is(listNode):
		return "a list"
	case n.is(mapNode):
		return "a map"
	}
	const most = 40
	return n.text[:min(len(n.text), most)] // a number or a truth value: ASCII
}

// at gives the place of n in file.
func (n *node) at(file string) place {
	if n == nil {
		return place{file: file}
	}
	return place{file: file, line: n.line}
}

// lineOf gives the line of a JSON pointer, or of what is there nearest to it; 0 if unknown.
func (n *node) lineOf(pointer string) int {
	if n == nil {
		return 0
	}
	line := n.line
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		next := n.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		if i, err := strconv.Atoi(step); err == nil && n.is(listNode) && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			break
		}
		n, line = next, next.line
	}
	return line
}

// value gives n as a value tree of package events.
func (n *node) value() any {
	if n == nil {
		return nil
	}
	switch n.kind {
	case boolNode:
		return n.text == "true"
	case numberNode:
		return json.Number(n.text)
	case textNode:
		return n.text
	case listNode:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.value()
		}
		return list
	case mapNode:
		m := make(map[string]any, len(n.keys))
		for i, k := range n.keys {
			m[k] = n.items[i].value()
		}
		return m
	case nullNode:
	}
	return nil
}

// appendJSON encodes n with the keys in the order of the file, which is the order in which a
// model's fields are listed.
func (n *node) appendJSON(dst []byte) []byte {
	if n == nil {
		return append(dst, "null"...)
	}
	switch n.kind {
	case boolNode, numberNode:
		return append(dst, n.text...)
	case textNode:
		return appendString(dst, n.text)
	case listNode:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst)
		}
		return append(dst, ']')
	case mapNode:
		dst = append(dst, '{')
		for i, k := range n.keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, k), ':')
			dst = n.items[i].appendJSON(dst)
		}
		return append(dst, '}')
	case nullNode:
	}
	return append(dst, "null"...)
}

func appendString(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // cannot happen: every string can be encoded
		return append(dst, `""`...)
	}
	return append(dst, b...)
}

// set stores a key; a repeated one replaces the earlier. It reports whether the key was there.
func (n *node) set(key string, v *node) (repeated bool) {
	if i := n.find(key); i >= 0 {
		n.items[i] = v
		return true
	}
	n.keys = append(n.keys, key)
	n.items = append(n.items, v)
	switch {
	case n.index != nil:
		n.index[key] = len(n.keys) - 1
	case len(n.keys) >= manyKeys:
		n.index = make(map[string]int, 2*manyKeys)
		for i, k := range n.keys {
			n.index[k] = i
		}
	}
	return false
}

// number reports whether text is a JSON number within the bounds of the wire.
func number(text string) bool {
	if len(text) > maxNumber || !json.Valid([]byte(text)) {
		return false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exp, err := strconv.Atoi(text[i+1:])
		return err == nil && exp <= maxExp && exp >= -maxExp
	}
	return true
}
