package guards

import (
	"encoding/json"
	"strconv"
)

// plain copies a value tree with numbers as conditions compare them: int where they fit into it,
// else float64, which may lose digits.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plain(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = plain(item)
		}
		return out
	default:
		return v
	}
}

func number(n json.Number) any {
	if i, err := strconv.Atoi(string(n)); err == nil {
		return i
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return nil // out of range: a comparison with it fails, and so refuses
	}
	return f
}
