package secrets

import (
	"bytes"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// Bounds of the search for a mask in a payload. What lies beyond is data, not specs of fields.
const (
	maskDepth = 6
	maskNodes = 10_000
)

// Asks reports whether the payload of a question asks for a secret: whether it, or the spec of
// a field in it, has a true maskInput, password or secret (mask_input is the same), or is of
// type password.
func Asks(payload []byte) bool {
	// Most payloads have none of the words, and a large one is costly to decode.
	lower := bytes.ToLower(payload)
	if !bytes.Contains(lower, []byte("mask")) && !bytes.Contains(lower, []byte("password")) && !bytes.Contains(lower, []byte("secret")) {
		return false
	}
	tree, err := events.Decode(payload)
	if err != nil {
		return false
	}
	// Level by level, so that no order of a map decides what is beyond the bound.
	nodes := 0
	for level, depth := []any{tree}, 0; len(level) > 0 && depth <= maskDepth && nodes <= maskNodes; depth++ {
		var next []any
		for _, v := range level {
			switch v := v.(type) {
			case map[string]any:
				for name, value := range v {
					if masks(name, value) {
						return true
					}
					next = append(next, value)
				}
			case []any:
				next = append(next, v...)
			}
		}
		nodes += len(next)
		level = next
	}
	return false
}

// masks reports whether one entry of an object says that what is typed is not to be seen.
func masks(name string, value any) bool {
	switch strings.ToLower(strings.ReplaceAll(name, "_", "")) {
	case "maskinput", "masked", "password", "secret":
		switch v := value.(type) {
		case bool:
			return v
		case string:
			return strings.EqualFold(v, "true")
		}
	case "type", "inputtype", "fieldtype":
		s, ok := value.(string)
		return ok && (strings.EqualFold(s, "password") || strings.EqualFold(s, "secret"))
	}
	return false
}
