package flow

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/oneturn/oneturn/events"
)

// Bounds of texts in problems, in bytes. Keys and texts of a program may be nearly as long as the
// program.
const (
	maxPointer = 1024 // a longer JSON pointer is cut
	maxText    = 256
	maxName    = 64 // in a list of names
)

// segment is a part of the path to a value: the key of an object or the index of an array.
type segment struct {
	key   string
	index int // -1 for a key
}

func (s segment) String() string {
	if s.index < 0 {
		return s.key
	}
	return strconv.Itoa(s.index)
}

func (s segment) compare(other segment) int {
	return cmp.Or(cmp.Compare(s.index, other.index), strings.Compare(s.key, other.key))
}

// use is a text with references, and its path below the arguments of its call.
type use struct {
	path     []segment
	text     string
	template template // of an orchestration, nil if the text is not valid
}

// collector finds the texts with references in the arguments of a call.
type collector struct {
	// read returns how many references a text has, and in an orchestration what it consists of.
	read func(text string, most int) (template, int)
	most int // references that may still be found
	path []segment
	uses []use
	deep bool // something is nested too deep to be searched
}

// walk searches a value. Keys are never references. The path is a stack: it is copied only for a
// text with references.
func (c *collector) walk(v any) {
	if len(c.path) > events.MaxDepth {
		c.deep = true
		return
	}
	switch v := v.(type) {
	case string:
		t, n := c.read(v, c.most)
		if n > 0 && c.most >= 0 {
			c.most -= n
			c.uses = append(c.uses, use{path: slices.Clone(c.path), text: v, template: t})
		}
	case []any:
		c.path = append(c.path, segment{})
		for i, item := range v {
			c.path[len(c.path)-1].index = i
			c.walk(item)
		}
		c.path = c.path[:len(c.path)-1]
	case map[string]any:
		c.path = append(c.path, segment{index: -1})
		for key, item := range v {
			c.path[len(c.path)-1].key = key
			c.walk(item)
		}
		c.path = c.path[:len(c.path)-1]
	}
}

// collect returns the uses in the arguments of a call, sorted by their paths, and reports what
// exceeds a limit: then none are returned. The list is the key of the program that has its calls.
func (c *compiler) collect(s source, call *Call, program Kind, list string, read func(string, int) (template, int)) []use {
	col := collector{read: read, most: maxReferences - c.references}
	for name, value := range call.Arguments {
		if !belongsInside(program, name, value) {
			col.path = append(col.path[:0], segment{key: name, index: -1})
			col.walk(value)
		}
	}
	exceeded := c.references > maxReferences
	c.references = maxReferences - col.most
	switch {
	case exceeded: // and reported
		return nil
	case c.references > maxReferences:
		c.addf(s.order, s.path+list, "too_complex", "the program has more than %d references", maxReferences)
		return nil
	case col.deep:
		c.addf(s.order, s.path+list, "too_complex", "the arguments of call %s are nested more than %d deep", call.ID, events.MaxDepth)
	}
	slices.SortFunc(col.uses, func(a, b use) int { return slices.CompareFunc(a.path, b.path, segment.compare) })
	return col.uses
}

// dynamic returns the names of the arguments with references, from sorted uses.
func dynamic(uses []use) map[string]bool {
	names := map[string]bool{}
	last := ""
	for i := range uses {
		if name := uses[i].path[0].key; i == 0 || name != last {
			names[name], last = true, name
		}
	}
	return names
}

// pointerOf appends a path to a JSON pointer, up to the bound of pointers.
func pointerOf(base string, path []segment) string {
	var b strings.Builder
	b.WriteString(base)
	for _, s := range path {
		if b.Len() > maxPointer {
			break
		}
		text := s.String()
		b.WriteString(pointer("", text[:min(len(text), maxPointer)]))
	}
	return b.String()
}

// joinPath writes a path for [Use.Argument].
func joinPath(path []segment) string {
	var b strings.Builder
	for i, s := range path {
		if b.Len() > maxText {
			break
		}
		if i > 0 {
			b.WriteByte('.')
		}
		text := s.String()
		b.WriteString(text[:min(len(text), maxText+1)])
	}
	return clip(b.String())
}

// clip bounds a text of the program in a problem.
func clip(text string) string { return cut(text, maxText) }

// cut shortens a text to at most a number of bytes, without cutting a character in two.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
