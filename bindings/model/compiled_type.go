package model

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Both languages compile into these nodes. A node is immutable after compiling, and recursive models share nodes.

// types is a set of JSON types. An integer is a number without fraction.
type types uint8

const (
	tNull types = 1 << iota
	tBool
	tInteger
	tNumber
	tString
	tArray
	tObject

	tNothing types = 0
	tAny     types = tNull | tBool | tInteger | tNumber | tString | tArray | tObject
)

// node is one compiled alternative of what a value may be. A rule applies only to values of
// its JSON type, as in JSON Schema. Nodes may form cycles through fields and items.
type node struct {
	types   types
	lax     bool    // MozaiksAI's column of the coercion table
	convert convert // coercion into the only type besides null, nil when there is none
	enum    *enum
	str     *stringRules
	num     *numberRules
	arr     *arrayRules
	obj     *objectRules
	all     []*node // each must hold
	alts    []*node // one must hold
	fixed   bool    // an alternative takes strings as they are: none coerces a string
	model   string  // name of the MozaiksAI model that this node is, "" for others
}

type stringRules struct {
	min, max int // in characters; max < 0 means no limit
	pattern  *regexp.Regexp
}

type numberRules struct {
	min, max, above, below *decimal // inclusive and exclusive bounds
	multiple               *decimal
}

type arrayRules struct {
	items    *node // nil: anything
	min, max int   // max < 0 means no limit
	unique   bool
}

// extras is what happens to the keys of an object that no field names.
type extras uint8

const (
	extrasKept extras = iota
	extrasDropped
	extrasChecked
)

type objectRules struct {
	fields   []field
	index    map[string]struct{} // names of the fields
	names    names
	extras   extras
	extra    *node // for extrasChecked
	min, max int   // number of keys; max < 0 means no limit
}

type field struct {
	name        string
	node        *node
	required    bool
	hasDefault  bool
	value       any // default
	description string
}

// typeOf returns the type of a JSON value; tNothing for anything else. Every number
// is tNumber here: whether it is an integer is a question about its literal.
func typeOf(v any) types {
	switch v.(type) {
	case nil:
		return tNull
	case bool:
		return tBool
	case json.Number:
		return tNumber
	case string:
		return tString
	case []any:
		return tArray
	case map[string]any:
		return tObject
	default:
		return tNothing
	}
}

// typeName names the JSON type of a value for a violation.
func typeName(v any) string {
	switch typeOf(v) {
	case tNull:
		return "null"
	case tBool:
		return "boolean"
	case tNumber:
		return "number"
	case tString:
		return "string"
	case tArray:
		return "array"
	case tObject:
		return "object"
	default:
		return "unknown"
	}
}

// words names the types of a set, for example "string or null".
func (t types) names() string {
	if t == tAny {
		return "any value"
	}
	names := make([]string, 0, 7) //nolint:mnd // the seven types below
	for _, one := range []struct {
		bit  types
		name string
	}{
		{tBool, "boolean"},
		{tInteger, "integer"},
		{tNumber, "number"},
		{tString, "string"},
		{tArray, "array"},
		{tObject, "object"},
		{tNull, "null"},
	} {
		if t&one.bit != 0 && (one.bit != tInteger || t&tNumber == 0) {
			names = append(names, one.name)
		}
	}
	if len(names) == 0 {
		return "no value"
	}
	return strings.Join(names, " or ")
}

// admits reports whether a value of type t belongs to the node without coercion. Integer
// literals of MozaiksAI's float are not admitted: they become fractions (5 to 5.0).
func (n *node) admits(t types, v any) bool {
	if t != tNumber {
		return n.types&t != 0
	}
	if n.types&(tInteger|tNumber) == 0 {
		return false
	}
	lit, _ := v.(json.Number)
	shape := shapeOf(string(lit))
	switch {
	case shape == notNumber:
		return false
	case n.types&(tInteger|tNumber) == tInteger:
		return shape == integerLiteral
	case n.lax && n.types&tInteger == 0:
		return shape == fractionLiteral
	default:
		return true
	}
}

// expected is the text of what a node expects.
func (n *node) expected() string {
	if len(n.alts) == 0 {
		return n.types.names()
	}
	names := make([]string, 0, len(n.alts))
	seen := map[string]bool{}
	for _, alt := range n.alts {
		name := alt.types.names()
		if alt.model != "" {
			name = alt.model + " object"
		}
		if !seen[name] && len(names) < maxNamed {
			seen[name] = true
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// maxNamed bounds how many names a text lists.
const maxNamed = 20
