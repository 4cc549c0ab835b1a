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

// typeOfName returns the set of a name of JSON Schema; an unknown name is any type.
func typeOfName(name string) typeSet {
	switch name {
	case "array":
		return typeArray
	case "boolean":
		return typeBoolean
	case "integer":
		return typeInteger
	case "null":
		return typeNull
	case "number":
		return typeNumber
	case "object":
		return typeObject
	case "string":
		return typeString
	default:
		return anyType
	}
}

// names lists the set in the words of JSON Schema, sorted. A set with fractions is `number`.
func (t typeSet) names() []string {
	var names []string
	add := func(name string, present bool) {
		if present {
			names = append(names, name)
		}
	}
	add("array", t&typeArray != 0)
	add("boolean", t&typeBoolean != 0)
	add("integer", t&typeNumber == typeInteger)
	add("null", t&typeNull != 0)
	add("number", t&typeFraction != 0)
	add("object", t&typeObject != 0)
	add("string", t&typeString != 0)
	return names
}

// typeOfValue returns the type of a value of `const` or `enum`. A number without a fraction is an
// integer however it is written: 3.0 is one.
func typeOfValue(v any) typeSet {
	switch v := v.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBoolean
	case json.Number:
		switch {
		case strings.ContainsAny(string(v), "eE"):
			return typeNumber // either: a chance to refuse is lost
		case isWhole(string(v)):
			return typeInteger
		default:
			return typeFraction
		}
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
