package answers

import (
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
)

// hiddenStep stands in a path for a name that only the answer has.
const hiddenStep = "*"

// redactViolations returns the violations of an answer to a secret question without anything that only the answer has:
// the name of an entry can be a secret, too. A path keeps the names that the schema, which the question shows, has, and
// positions in lists; what is expected is the rule of the schema, because texts for people quote names and values.
func redactViolations(violations []model.Violation, schema, value any) []model.Violation {
	known := textsOf(schema)
	out := make([]model.Violation, 0, len(violations))
	for _, f := range violations {
		out = append(out, model.Violation{
			Path: knownPath(f.Path, known, value), Rule: f.Rule, Expected: "a value that satisfies `" + f.Rule + "` of the schema", GotType: f.GotType,
		})
	}
	return slices.CompactFunc(out, func(a, b model.Violation) bool { return a.Path == b.Path && a.Rule == b.Rule && a.GotType == b.GotType })
}

// knownPath is a JSON pointer into a value with [hiddenStep] for the names that the schema does not have.
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
		default: // the value was coerced to another form
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
