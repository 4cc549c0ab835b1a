package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// isExact reports whether the values of a key have no other members than the case names.
func isExact(key string) bool {
	return slices.Contains([]string{"arguments", "output", "args", "bindings", "calls"}, key)
}

// difference compares a value with what is expected and returns where they differ, "" if they do not.
// Of an object only the keys that the case names count, unless exact is set. Lists have the same
// length. Asis compares numbers by their digits.
func difference(path string, want, got any, exact, asis bool) string {
	switch want := want.(type) {
	case map[string]any:
		return objectDifference(path, want, got, exact, asis)
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%s: %s, expected %s", path, text(got), text(want))
		}
		for i := range want {
			if d := difference(fmt.Sprintf("%s[%d]", path, i), want[i], list[i], exact, asis); d != "" {
				return d
			}
		}
		return ""
	case json.Number:
		if n, ok := got.(json.Number); ok && (n == want || !asis && compareNumbers(n, want) == 0) {
			return ""
		}
	default:
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s: %s, expected %s", path, text(got), text(want))
}

// objectDifference is [difference] for an object.
func objectDifference(path string, want map[string]any, got any, exact, asis bool) string {
	if least, ok := want["at_least"].(json.Number); ok && len(want) == 1 {
		if n, ok := got.(json.Number); ok && compareNumbers(n, least) >= 0 {
			return ""
		}
		return fmt.Sprintf("%s: %s, expected at least %s", path, text(got), least)
	}
	object, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s: %s, expected an object", path, text(got))
	}
	for _, key := range keys(want) {
		if name, isContains := strings.CutSuffix(key, "_contains"); isContains {
			for _, part := range texts(want[key]) {
				if s, _ := object[name].(string); !strings.Contains(s, part) {
					return fmt.Sprintf("%s.%s: %s, expected to contain %q", path, name, text(object[name]), part)
				}
			}
			continue
		}
		deep := exact || isExact(key) && !isProgramResult(object[key])
		if d := difference(path+"."+key, want[key], object[key], deep, asis); d != "" {
			return d
		}
		if _, there := object[key]; !there && want[key] != nil {
			return fmt.Sprintf("%s.%s is missing, expected %s", path, key, text(want[key]))
		}
	}
	for _, key := range keys(object) {
		if _, named := want[key]; exact && !named {
			return fmt.Sprintf("%s.%s: %s, expected nothing", path, key, text(object[key]))
		}
	}
	return ""
}

// isProgramResult reports whether a value is the payload of a program: its other members are not the
// case's business.
func isProgramResult(v any) bool {
	m, _ := v.(map[string]any)
	_, plan := m["results"]
	_, orchestration := m["steps"]
	return m["status"] != nil && (plan || orchestration)
}

func compareNumbers(a, b json.Number) int {
	x, okX := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	if !okX || !okY {
		return strings.Compare(string(a), string(b))
	}
	return x.Cmp(y)
}

// unordered compares lists whose order does not count; each expected item takes one that fits.
func unordered(path string, want, got []any, fits func(want, got any) bool) string {
	left := slices.Clone(got)
	for _, w := range want {
		i := slices.IndexFunc(left, func(g any) bool { return fits(w, g) })
		if i < 0 {
			return fmt.Sprintf("%s: expected %s among %s", path, text(w), text(got))
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		return fmt.Sprintf("%s: %s is not expected", path, text(left[0]))
	}
	return ""
}

func keys(m map[string]any) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// encoded returns the JSON of a value tree.
func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		data = strconv.AppendQuote(nil, fmt.Sprint(v))
	}
	return data
}

// text returns the JSON of a value tree, cut to what a line of a report can have.
func text(v any) string {
	const most = 400
	data := encoded(v)
	if len(data) > most {
		return string(data[:most]) + "…"
	}
	return string(data)
}

// tree returns a value as JSON reads it, with its numbers as written.
func tree(v any) any {
	d := json.NewDecoder(bytes.NewReader(encoded(v)))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return fmt.Sprint(err)
	}
	return out
}
