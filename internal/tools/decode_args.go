package tools

import (
	"bytes"
	"encoding/json"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// decoderFor returns how JSON becomes a value of type t, by the rules of encoding/json. Only
// that package itself makes json.Numbers, of which those in interfaces are some; all other types
// take a decoder with the same rules and a fifth of the cost.
func decoderFor(t reflect.Type) func(data []byte, to any) error {
	if holdsNumber(t, map[reflect.Type]bool{}) {
		return func(data []byte, to any) error {
			d := json.NewDecoder(bytes.NewReader(data))
			d.UseNumber()
			return d.Decode(to)
		}
	}
	// The rules of encoding/json but for errors: they would take a separate pass to find.
	rules := jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
	return func(data []byte, to any) error { return jsonv2.Unmarshal(data, to, rules) }
}

// holdsNumber reports whether a value of type t can hold a json.Number.
func holdsNumber(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if t == reflect.TypeFor[json.Number]() {
		return true
	}
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array, reflect.Pointer, reflect.Slice:
		return holdsNumber(t.Elem(), seen)
	case reflect.Map:
		return holdsNumber(t.Key(), seen) || holdsNumber(t.Elem(), seen)
	case reflect.Struct:
		for field := range t.Fields() {
			if holdsNumber(field.Type, seen) {
				return true
			}
		}
		return false
	default:
		return false
	}
}
