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

	"go.yaml.in/yaml/v3"
)

// YAML manifests are read by the yaml library into its nodes, which become values here: aliases are expanded
// within bounds, merge keys resolved, and scalars of YAML 1.1 brought into their JSON form.

// yamlLine finds the line in an error text of the YAML library.
var yamlLine = regexp.MustCompile(`line (\d+): `)

// grammatical are the errors of the YAML library's parser, as opposed to its scanner.
var grammatical = regexp.MustCompile(`^did not find expected (?:node content|key|'-' indicator|',' or '[\]}]')$`)

// scalar is enter for a text, whose size counts as often as aliases name it.
func (p *parser) scalar(y *yaml.Node) error {
	if p.text += len(y.Value); p.text > maxText {
		return &parseError{y.Line, fmt.Sprintf("more than %d bytes of text, aliases expanded", maxText)}
	}
	return nil
}

func (p *parser) yaml(data []byte) (n *node, err error) {
	defer func() {
		// The library reports its own errors by panic and lets others through.
		if r := recover(); r != nil {
			n, err = nil, &parseError{0, "cannot parse the YAML file"}
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
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &parseError{max(root.Line, second.Line), "more than one YAML document in the file: the second one begins here"}
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
