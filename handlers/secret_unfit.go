package handlers

import (
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
)

// hiddenStep stands in a path for a name that only the answer has.
const hiddenStep = "*"

// unfitSecret is why an answer to a secret question does not fit its schema, with nothing that only the
// answer has: a secret may be the name of an entry, too. Of a place there are the names that the schema
// has, as the question shows them, and positions in lists; of what is expected, the rule of the schema.
// Texts for people quote names and values.
func unfitSecret(faults []model.Violation, schema, value any) []model.Violation {
	known := textsOf(schema)
	out := make([]model.Violation, 0, len(faults))
	for _, f := range faults {
		out = append(out, model.Violation{
			Path: knownPath(f.Path, known, value), Rule: f.Rule, Expected: "a value that satisfies `" + f.Rule + "` of the schema", GotType: f.GotType,
		})
	}
	return slices.CompactFunc(out, func(a, b model.Violation) bool { return a.Path == b.Path && a.Rule == b.Rule && a.GotType == b.GotType })
}

// knownPath is a JSON pointer into a value with [hiddenStep] for the names that are not known.
func knownPath(path string, known map[string]bool, value any) string {
	if path == "" {
		return ""
	}
	steps := strings.Split(path[1:], "/")
	for i, step := range steps {
		name := strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		var shown bool
		switch at := value.(type) {
		case []any:
			n, err := strconv.Atoi(name)
			shown, value = err == nil && n >= 0 && n < len(at), nil
			if shown {
				value = at[n]
			}
		case map[string]any:
			shown, value = known[name], at[name]
		default: // the value was taken in another form than it came in
			shown, value = known[name], nil
		}
		if !shown {
			steps[i] = hiddenStep
		}
	}
	return "/" + strings.Join(steps, "/")
}

// textsOf returns the names and texts of a document.
func textsOf(document any) map[string]bool {
	texts := map[string]bool{}
	for open := []any{document}; len(open) > 0; {
		v := open[len(open)-1]
		open = open[:len(open)-1]
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				texts[name] = true
				open = append(open, value)
			}
		case []any:
			open = append(open, v...)
		case string:
			texts[v] = true
		}
	}
	return texts
}
