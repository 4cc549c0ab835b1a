package model

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
)

// The way back, from nodes to JSON Schema, for producers that ask which output is expected.

// render writes a MozaiksAI model as JSON Schema 2020-12. Fields keep their manifest order,
// because producers that follow a schema emit keys in its order. Other models become $defs.
func render(root *node) json.RawMessage {
	r := &renderer{root: root, known: map[string]bool{}}
	body := r.object(root)
	var defs members
	for len(r.queue) > 0 {
		n := r.queue[0]
		r.queue = r.queue[1:]
		defs = append(defs, member{n.model, r.object(n).bytes()})
	}
	body = append(members{{"$schema", []byte(`"https://json-schema.org/draft/2020-12/schema"`)}}, body...)
	if len(defs) > 0 {
		body = append(body, member{"$defs", defs.bytes()})
	}
	return body.bytes()
}

// member is one key of an object with its JSON; members keeps their order.
type (
	member struct {
		key  string
		json []byte
	}
	members []member
)

func (m members) bytes() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, one := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(one.key))
		b.WriteByte(':')
		b.Write(one.json)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// encode writes a value of the manifest. What JSON cannot express becomes null.
func encode(v any) []byte {
	out, err := events.AppendJSON(nil, v)
	if err != nil {
		return []byte("null")
	}
	return out
}

func list(parts [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
}

// renderer collects the models that a schema refers to.
type renderer struct {
	root  *node
	known map[string]bool
	queue []*node
}

// ref points to a model.
func (r *renderer) ref(n *node) members {
	target := "#"
	if n != r.root {
		if !r.known[n.model] {
			r.known[n.model] = true
			r.queue = append(r.queue, n)
		}
		target = "#/$defs/" + url.PathEscape(pathToken(n.model))
	}
	return members{{"$ref", encode(target)}}
}

// node writes a node where it is used.
func (r *renderer) node(n *node) members {
	switch {
	case n.model != "":
		return r.ref(n)
	case len(n.alts) > 0:
		return members{{"anyOf", list(r.each(n.alts))}}
	case len(n.all) > 0:
		return members{{"allOf", list(r.each(n.all))}}
	case n.enum != nil:
		return r.enum(n)
	case n.types == tAny:
		return nil
	case n.types&tNull != 0 && n.types != tNull:
		inner := *n
		inner.types &^= tNull
		return members{{"anyOf", list([][]byte{r.node(&inner).bytes(), []byte(`{"type":"null"}`)})}}
	case n.types&tObject != 0:
		return r.object(n)
	case n.types&tArray != 0:
		return r.array(n)
	default:
		return append(members{{"type", encode(n.types.names())}}, r.bounds(n)...)
	}
}

func (r *renderer) each(nodes []*node) [][]byte {
	out := make([][]byte, len(nodes))
	for i, n := range nodes {
		out[i] = r.node(n).bytes()
	}
	return out
}

func (r *renderer) object(n *node) members {
	m := members{{"type", encode("object")}}
	o := n.obj
	if o.extras != extrasDropped {
		if o.extra != nil {
			return append(m, member{"additionalProperties", r.node(o.extra).bytes()})
		}
		return m
	}
	var properties members
	required := []any{}
	for _, f := range o.fields {
		property := r.node(f.node)
		if f.description != "" {
			property = append(property, member{"description", encode(f.description)})
		}
		if f.hasDefault {
			property = append(property, member{"default", encode(f.value)})
		}
		properties = append(properties, member{f.name, property.bytes()})
		if f.required {
			required = append(required, f.name)
		}
	}
	m = append(m, member{"properties", properties.bytes()})
	if len(required) > 0 {
		m = append(m, member{"required", encode(required)})
	}
	return append(m, member{"additionalProperties", []byte("false")})
}

func (r *renderer) array(n *node) members {
	m := members{{"type", encode("array")}}
	if n.arr.items != nil {
		m = append(m, member{"items", r.node(n.arr.items).bytes()})
	}
	m = count(m, "minItems", n.arr.min)
	if n.arr.max >= 0 {
		m = append(m, member{"maxItems", encode(json.Number(strconv.Itoa(n.arr.max)))})
	}
	if n.arr.unique {
		m = append(m, member{"uniqueItems", []byte("true")})
	}
	return m
}

// enum writes a closed set with its type, if its values have only one.
func (r *renderer) enum(n *node) members {
	values := make([]any, 0, len(n.enum.values))
	seen := map[string]bool{}
	kinds := map[string]bool{}
	for _, v := range n.enum.values {
		if key := string(appendKey(nil, v)); !seen[key] {
			seen[key] = true
			values = append(values, v)
			kinds[typeName(v)] = true
		}
	}
	m := members{{"enum", encode(values)}}
	if len(kinds) == 1 {
		m = append(m, member{"type", encode(typeName(values[0]))})
	}
	return append(m, r.bounds(n)...)
}

func (r *renderer) bounds(n *node) members {
	var m members
	if n.str != nil {
		m = count(m, "minLength", n.str.min)
		if n.str.max >= 0 {
			m = append(m, member{"maxLength", encode(json.Number(strconv.Itoa(n.str.max)))})
		}
		if n.str.pattern != nil {
			m = append(m, member{"pattern", encode(n.str.pattern.String())})
		}
	}
	if n.num != nil {
		for _, bound := range []struct {
			key string
			d   *decimal
		}{
			{"minimum", n.num.min},
			{"maximum", n.num.max},
			{"exclusiveMinimum", n.num.above},
			{"exclusiveMaximum", n.num.below},
			{"multipleOf", n.num.multiple},
		} {
			if bound.d != nil {
				m = append(m, member{bound.key, encode(json.Number(bound.d.text()))})
			}
		}
	}
	return slices.Clip(m)
}

func count(m members, key string, n int) members {
	if n <= 0 {
		return m
	}
	return append(m, member{key, encode(json.Number(strconv.Itoa(n)))})
}
