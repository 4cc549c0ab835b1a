package model

import (
	"encoding/json"
	"strings"
)

// Bounds of a sample.
const (
	maxSampleDepth = 8
	maxSampleSize  = 2_000 // values
)

// sample makes a value of the shape that a model describes, for the probe at load. It has
// every field and need not be valid.
type sample struct{ left int }

func newSample() *sample { return &sample{left: maxSampleSize} }

func (s *sample) value(n *node, depth int) any {
	s.left--
	for len(n.alts) > 0 && n.obj == nil && depth < maxSampleDepth {
		n = n.alts[0]
		depth++
	}
	switch {
	case n.enum != nil && len(n.enum.values) > 0:
		return n.enum.values[0]
	case n.types&tObject != 0 && n.obj != nil:
		return s.object(n, depth)
	case n.types&tArray != 0:
		return s.array(n, depth)
	case n.types&tString != 0:
		const typical = 200
		return strings.Repeat("a", typical)
	case n.types&(tInteger|tNumber) != 0:
		return json.Number("1")
	case n.types&tBool != 0:
		return true
	default:
		return nil
	}
}

func (s *sample) object(n *node, depth int) any {
	out := map[string]any{}
	if depth >= maxSampleDepth {
		return out
	}
	for _, part := range append([]*node{n}, n.all...) {
		if part.obj == nil {
			continue
		}
		for _, f := range part.obj.fields {
			if s.left > 0 {
				out[f.name] = s.value(f.node, depth+1)
			}
		}
		if part.obj.extra != nil && s.left > 0 {
			out["key"] = s.value(part.obj.extra, depth+1)
		}
	}
	return out
}

func (s *sample) array(n *node, depth int) any {
	if n.arr == nil || n.arr.items == nil || depth >= maxSampleDepth || s.left <= 0 {
		return []any{}
	}
	return []any{s.value(n.arr.items, depth+1)}
}
