package tools

import (
	"bytes"
	"encoding/json"
	"reflect"

	fast "github.com/go-json-experiment/json/v1"
)

// decoderFor returns how JSON becomes a value of type t, by the rules of encoding/json. Numbers
// in an interface have to become json.Number, which only encoding/json itself does; all other
// types take a decoder with the same rules and a third of the cost.
func decoderFor(t reflect.Type) func(data []byte, to any) error {
	if holdsInterface(t, map[reflect.Type]bool{}) {
		return func(data []byte, to any) error {
			d := json.NewDecoder(bytes.NewReader(data))
			d.UseNumber()
			return d.Decode(to)
		}
	}
	return fast.Unmarshal
}

// holdsInterface reports whether a value of type t can hold an interface.
func holdsInterface(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array, reflect.Pointer, reflect.Slice:
		return holdsInterface(t.Elem(), seen)
	case reflect.Map:
		return holdsInterface(t.Key(), seen) || holdsInterface(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsInterface(t.Field(i).Type, seen) {
				return true
			}
		}
		return false
	default:
		return false
	}
}
