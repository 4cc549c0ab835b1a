package bindings

import (
	"bytes"
	"fmt"
	"strings"
)

// document is one manifest as read.
type document struct {
	file     string // relative to the root
	root     *node  // nil if the file is absent or unreadable
	repeated []repeatedKey
}

// repeatedKey is a duplicate key of a map; the last value is used.
type repeatedKey struct {
	key  string
	line int
}

// parseError is a manifest that cannot be read.
type parseError struct {
	line   int
	reason string
}

// Error implements error.
func (e *parseError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.reason) }

// readableAgain returns how to fix a manifest that cannot be read.
func readableAgain(file, reason string) string {
	for _, known := range []struct{ reason, fix string }{
		{"mapping values are not allowed", `put the value in quotes if it holds ": ", or look for a wrong indentation near this line`},
		{"cannot start any token", "indent with blanks, not with tabs; put a value in quotes that begins with @, ` or %"},
		{"did not find expected key", "look for a wrong indentation, or for a missing bracket or quote, near this line or below"},
		{"did not find expected", "look for a missing bracket, comma or quote near this line or below"},
		{"unknown anchor", "define the anchor with & above its use, or put the text in quotes"},
		{"more than one YAML document", "remove ---, or move what follows into the directory of another workflow"},
		{"tag ", "remove the tag"},
		{"number", "write it in quotes if it is a text, else as JSON writes numbers"},
		{"a key must be a text", "put the key in quotes"},
		{"<< must name a map", "let << name an anchor of a map"},
		{"values, aliases expanded", "split the workflow"},
		{"nested deeper", "nest less deeply"},
		{errTooLarge.Error(), "split the workflow"},
		{"open: ", "make it a regular file that the worker may read"},
		{"not a regular file", "make it a regular file that the worker may read"},
	} {
		if strings.Contains(reason, known.reason) {
			return known.fix
		}
	}
	if strings.HasSuffix(file, ".json") {
		return "look for a missing comma, bracket or quote at this line or above"
	}
	return "look for a wrong indentation, or for a missing bracket or quote, near this line or below"
}

// parse reads a manifest by the extension of its name.
func parse(file string, data []byte) (document, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // byte-order mark
	p := parser{doc: document{file: file}}
	var err error
	if strings.HasSuffix(file, ".json") {
		p.doc.root, err = p.json(data)
	} else {
		p.doc.root, err = p.yaml(data)
	}
	return p.doc, err
}

// parser counts the values of one manifest, so that aliases cannot blow it up.
type parser struct {
	doc   document
	nodes int
	text  int // bytes
}

func (p *parser) enter(line, depth int) error {
	p.nodes++
	switch {
	case p.nodes > maxNodes:
		return &parseError{line, fmt.Sprintf("more than %d values, aliases expanded", maxNodes)}
	case depth > maxDepth:
		return &parseError{line, fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	return nil
}

func (p *parser) set(m *node, key string, line int, v *node) {
	if m.set(key, v) {
		p.doc.repeated = append(p.doc.repeated, repeatedKey{key, line})
	}
}
