package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// fieldNames returns the top-level properties in the order of the document.
func (s *schemaCompiler) fieldNames(schema json.RawMessage, root *sub) []string {
	for root.onlyRef() {
		root = root.ref
	}
	names := s.graph.names(root)
	order := documentOrder(schema, root.pointer+"/properties")
	slices.SortStableFunc(names, func(a, b string) int { return order[a] - order[b] })
	return names
}

// documentOrder returns the positions of the keys of the object at pointer.
func documentOrder(doc json.RawMessage, pointer string) map[string]int {
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		var object map[string]json.RawMessage
		if json.Unmarshal(doc, &object) == nil {
			doc = object[unescape(step)]
			continue
		}
		var list []json.RawMessage
		i, err := strconv.Atoi(step)
		if json.Unmarshal(doc, &list) != nil || err != nil || i < 0 || i >= len(list) {
			return nil
		}
		doc = list[i]
	}
	order := map[string]int{}
	d := json.NewDecoder(bytes.NewReader(doc))
	for token, err := d.Token(); err == nil; token, err = d.Token() {
		key, ok := token.(string)
		if !ok {
			continue
		}
		order[key] = len(order)
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			break
		}
	}
	return order
}

func unescape(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}
