package bindings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// document is one manifest as read.
type document struct {
	file     string // relative to the root
	root     *node  // nil if the file is absent or unreadable
	repeated []repeatedKey
}

// repeatedKey is a key that stands twice in one map; the later one counts.
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
		{"more than one YAML document", "keep one document, without --- between"},
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

// scalar is enter for a text, whose size counts as often as aliases name it.
func (p *parser) scalar(y *yaml.Node) error {
	if p.text += len(y.Value); p.text > maxText {
		return &parseError{y.Line, fmt.Sprintf("more than %d bytes of text, aliases expanded", maxText)}
	}
	return nil
}

func (p *parser) set(m *node, key string, line int, v *node) {
	if m.set(key, v) {
		p.doc.repeated = append(p.doc.repeated, repeatedKey{key, line})
	}
}

// yamlLine finds the line in an error text of the YAML library.
var yamlLine = regexp.MustCompile(`line (\d+): `)

// grammatical are the errors of the YAML library's parser, as opposed to its scanner.
var grammatical = regexp.MustCompile(`^did not find expected (?:node content|key|'-' indicator|',' or '[\]}]')$`)

func (p *parser) yaml(data []byte) (n *node, err error) {
	defer func() {
		// The library reports its own errors by panic and lets others through.
		if r := recover(); r != nil {
			n, err = nil, &parseError{0, "the YAML reader gave up on the file"}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var root yaml.Node
	if err := dec.Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil //nolint:nilnil // an empty manifest is an absent one
		}
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		line := 1 // the library leaves it out
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			line, _ = strconv.Atoi(m[1])
			text = strings.Replace(text, m[0], "", 1)
			if grammatical.MatchString(text) {
				line++ // the library counts these from 0
			}
		}
		return nil, &parseError{line, text}
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, &parseError{root.Line, "more than one YAML document in the file"}
	}
	if len(root.Content) == 0 {
		return nil, nil //nolint:nilnil // as above
	}
	return p.fromYAML(root.Content[0], 0)
}

func (p *parser) fromYAML(y *yaml.Node, depth int) (*node, error) {
	if err := p.enter(y.Line, depth); err != nil {
		return nil, err
	}
	if tag := y.ShortTag(); y.Kind == yaml.SequenceNode && tag != "!!seq" || y.Kind == yaml.MappingNode && tag != "!!map" {
		return nil, &parseError{y.Line, fmt.Sprintf("tag %s is not allowed", quoted(y.Tag))}
	}
	switch y.Kind {
	case yaml.AliasNode:
		return p.fromYAML(y.Alias, depth+1)
	case yaml.SequenceNode:
		list := &node{kind: listNode, line: y.Line}
		for _, c := range y.Content {
			item, err := p.fromYAML(c, depth+1)
			if err != nil {
				return nil, err
			}
			list.items = append(list.items, item)
		}
		return list, nil
	case yaml.MappingNode:
		return p.fromMapping(y, depth)
	case yaml.ScalarNode:
		if err := p.scalar(y); err != nil {
			return nil, err
		}
		return scalar(y)
	case yaml.DocumentNode:
	}
	return nil, &parseError{y.Line, "unexpected YAML value"}
}

func (p *parser) fromMapping(y *yaml.Node, depth int) (*node, error) {
	m := &node{kind: mapNode, line: y.Line}
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		v, err := p.fromYAML(y.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if err := p.scalar(key); err != nil {
			return nil, err
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, &parseError{key.Line, "a key must be a text"}
		case key.ShortTag() == "!!merge":
			merged = append(merged, v)
		default:
			// A key's own line serves better than the value's, which may start below it.
			v.line = key.Line
			p.set(m, key.Value, key.Line, v)
		}
	}
	for _, v := range merged {
		sources := []*node{v}
		if v.is(listNode) {
			sources = v.items
		}
		for _, s := range sources {
			if !s.is(mapNode) {
				return nil, &parseError{y.Line, "<< must name a map"}
			}
			for i, k := range s.keys {
				if m.get(k) == nil {
					m.set(k, s.items[i])
				}
			}
		}
	}
	return m, nil
}

func scalar(y *yaml.Node) (*node, error) {
	n := &node{line: y.Line, text: y.Value, plain: y.Style == 0}
	switch y.ShortTag() {
	case "!!null":
		n.text = ""
	case "!!bool":
		n.kind = boolNode
		n.text = strings.ToLower(y.Value)
		if n.text != "true" && n.text != "false" {
			n.kind, n.text = textNode, y.Value
		}
	case "!!int", "!!float":
		return yamlNumber(y, n)
	case "!!str", "!!timestamp", "!!binary":
		n.kind = textNode
	default:
		return nil, &parseError{y.Line, fmt.Sprintf("tag %s is not allowed", quoted(y.Tag))}
	}
	return n, nil
}

// yamlNumber keeps the spelling of a number that JSON knows as well and rewrites the others
// (hexadecimal, underscores, leading plus); infinities and NaN have no JSON form.
func yamlNumber(y *yaml.Node, n *node) (*node, error) {
	n.kind = numberNode
	if number(y.Value) {
		return n, nil
	}
	if json.Valid([]byte(y.Value)) {
		return nil, &parseError{y.Line, "number out of bounds: " + quoted(y.Value)}
	}
	var v any
	if err := y.Decode(&v); err != nil {
		return nil, &parseError{y.Line, "not a number: " + quoted(y.Value)}
	}
	switch v := v.(type) {
	case float64:
		n.text = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		n.text = fmt.Sprint(v)
	}
	if !number(n.text) {
		return nil, &parseError{y.Line, "not a number that JSON can hold: " + quoted(y.Value)}
	}
	return n, nil
}

// jsonReader walks the tokens of a JSON text and knows the line it is on.
type jsonReader struct {
	*parser

	data []byte
	dec  *jsontext.Decoder
	at   int64 // offset up to which lines are counted
	line int
}

func (p *parser) json(data []byte) (*node, error) {
	r := &jsonReader{parser: p, data: data, line: 1}
	r.dec = jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	n, err := r.read(0)
	if errors.Is(err, io.EOF) && len(bytes.TrimSpace(data)) == 0 {
		return nil, nil //nolint:nilnil // an empty manifest is an absent one
	}
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, &parseError{r.here(), "text after the end of the JSON value"}
	}
	return n, nil
}

// here counts lines up to the last token.
func (r *jsonReader) here() int {
	offset := min(r.dec.InputOffset(), int64(len(r.data)))
	r.line += bytes.Count(r.data[r.at:offset], []byte{'\n'})
	r.at = offset
	return r.line
}

func (r *jsonReader) token() (jsontext.Token, error) {
	tok, err := r.dec.ReadToken()
	if err == nil || (errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)) {
		return tok, err //nolint:wrapcheck // io.EOF is compared by the caller
	}
	line, reason := r.here(), "not JSON"
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		if end := min(syntax.ByteOffset, int64(len(r.data))); end >= 0 {
			line = 1 + bytes.Count(r.data[:end], []byte{'\n'})
		}
		reason = "not JSON: " + syntax.Err.Error()
	}
	return tok, &parseError{line, reason}
}

func (r *jsonReader) read(depth int) (*node, error) {
	tok, err := r.token()
	if err != nil {
		return nil, err
	}
	n := &node{line: r.here()}
	if err := r.enter(n.line, depth); err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
	case 't', 'f':
		n.kind, n.text = boolNode, tok.String()
	case '"':
		n.kind, n.text = textNode, tok.String()
	case '0':
		n.kind, n.text = numberNode, tok.String()
		if !number(n.text) {
			return nil, &parseError{n.line, "number out of bounds: " + quoted(n.text)}
		}
	case '[':
		n.kind = listNode
		return n, r.list(n, depth)
	case '{':
		n.kind = mapNode
		return n, r.object(n, depth)
	default: // the decoder gives no other token at the start of a value
	}
	return n, nil
}

func (r *jsonReader) list(n *node, depth int) error {
	for r.dec.PeekKind() != ']' {
		item, err := r.read(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := r.token()
	return err
}

func (r *jsonReader) object(n *node, depth int) error {
	for r.dec.PeekKind() != '}' {
		key, err := r.token()
		if err != nil {
			return err
		}
		name, line := key.String(), r.here()
		v, err := r.read(depth + 1)
		if err != nil {
			return err
		}
		v.line = line
		r.set(n, name, line, v)
	}
	_, err := r.token()
	return err
}
