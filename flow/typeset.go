package flow

import (
	"encoding/json"
	"strings"
)

// typeSet is a set of JSON types. Whole numbers and fractions are separate, since a schema
// distinguishes them: `number` is both, `integer` the first only.
type typeSet uint8

// The types of JSON values.
const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeFraction
	typeString
	typeArray
	typeObject

	typeNumber = typeInteger | typeFraction
	anyType    = typeNull | typeBoolean | typeNumber | typeString | typeArray | typeObject
)

// typeNames are the names of JSON Schema, sorted.
var typeNames = [...]struct {
	name string
	set  typeSet
}{
	{"array", typeArray},
	{"boolean", typeBoolean},
	{"integer", typeInteger},
	{"null", typeNull},
	{"number", typeNumber},
	{"object", typeObject},
	{"string", typeString},
}

// typeOfName returns the set of a name of JSON Schema; an unknown name is any type.
func typeOfName(name string) typeSet {
	for _, t := range typeNames {
		if t.name == name {
			return t.set
		}
	}
	return anyType
}

// names lists the set in the words of JSON Schema, sorted.
func (t typeSet) names() []string {
	var names []string
	for _, n := range typeNames {
		switch n.set {
		case typeNumber:
			if t&typeFraction == 0 {
				continue
			}
		case typeInteger:
			if t&typeNumber != typeInteger {
				continue
			}
		}
		if t&n.set != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// typeOfValue returns the type of a value of `const` or `enum`. A number without a fraction is an
// integer however it is written: 3.0 is one, 1e3 too.
func typeOfValue(v any) typeSet {
	switch v := v.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBoolean
	case json.Number:
		if isWhole(string(v)) {
			return typeInteger
		}
		return typeFraction
	case string:
		return typeString
	case []any:
		return typeArray
	default:
		return typeObject
	}
}

// isWhole reports whether a JSON number has no fraction. A number with an exponent counts as
// either: the caller only loses a chance to refuse.
func isWhole(number string) bool {
	if strings.ContainsAny(number, "eE") {
		return true
	}
	_, fraction, _ := strings.Cut(number, ".")
	return strings.Trim(fraction, "0") == ""
}
