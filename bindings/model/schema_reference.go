package model

import (
	"net/url"
	"strconv"
	"strings"
)

// follow resolves a reference. Its target may be a place that no keyword has led to.
func (g *graph) follow(s *sub) {
	text, _ := s.raw["$ref"].(string)
	pointer, err := url.PathUnescape(strings.TrimPrefix(text, "#"))
	if err != nil {
		g.refuse(s.pointer, "`$ref` is not a valid reference", "write a place such as #/$defs/Name")
		return
	}
	if pointer == "/" {
		pointer = ""
	}
	tree := g.tree
	depth := 0
	if pointer != "" {
		for step := range strings.SplitSeq(pointer[1:], "/") {
			var ok bool
			if tree, ok = stepInto(tree, unescape(step)); !ok {
				g.refuse(s.pointer, "`$ref` "+quote(text)+" leads nowhere", "define its target in $defs")
				return
			}
			depth++
		}
	}
	target := g.read(pointer, tree, min(depth, maxSchemaDepth))
	s.ref = target
	s.same = append(s.same, target)
}

// stepInto follows one step of a JSON pointer.
func stepInto(tree any, step string) (any, bool) {
	switch tree := tree.(type) {
	case map[string]any:
		v, ok := tree[step]
		return v, ok
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(tree) || step != strconv.Itoa(i) {
			return nil, false
		}
		return tree[i], true
	default:
		return nil, false
	}
}
