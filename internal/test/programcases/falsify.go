package main

import (
	"encoding/json"
	"maps"
)

// falsified returns expectations with one key changed each, so that a run that met the original has to
// fail every one of them: a check that cannot fail is found.
func falsified(expect map[string]any) map[string]map[string]any {
	changed := map[string]map[string]any{}
	for key, value := range expect {
		if key == "numbers_as_written" {
			continue
		}
		other := maps.Clone(expect)
		other[key] = changedValue(key, value)
		changed[key] = other
	}
	return changed
}

// changedValue returns a value that cannot be met when the given one is.
func changedValue(key string, v any) any {
	switch key {
	case "duration_ms":
		return map[string]any{"min": json.Number("100000000")}
	case "calls_at_most":
		return replaceNumbers(v, "-1")
	case "calls_at_least", "calls", "peak", "ai_calls":
		if m, ok := v.(map[string]any); ok && len(m) == 0 {
			return map[string]any{"no such tool": json.Number("1")}
		}
		return replaceNumbers(v, "1000")
	case "metrics_lack", "planner_system_lacks":
		return []any{""}
	case "absent":
		return []any{""} // the turn itself has records
	case "asked_once":
		return v
	case "same_idempotency_key", "rising_fencing_token":
		return []any{"no such call"}
	}
	switch v := v.(type) {
	case bool:
		return !v
	case string:
		return v + " changed"
	case json.Number:
		return json.Number("987654321")
	case []any:
		return append(append([]any{}, v...), "an unexpected entry")
	case map[string]any:
		other := maps.Clone(v)
		other["one more"] = "key"
		return other
	default:
		return "changed"
	}
}

func replaceNumbers(v any, by string) any {
	m, _ := v.(map[string]any)
	other := map[string]any{}
	for k := range m {
		other[k] = json.Number(by)
	}
	return other
}
