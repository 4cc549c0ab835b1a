package model

import (
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/diag"
)

// requiredUnknown reports names of `required` that `properties` does not have: JSON Schema accepts that, but most often
// one of the two is misspelt, and no value with the declared names alone is valid. Where other parts of the schema may
// declare the name, nothing is reported.
func (c *contradictions) requiredUnknown(at *sub) {
	names, _ := at.raw["required"].([]any)
	_, others := at.raw["additionalProperties"] // also false: then it is an error
	if len(names) == 0 || len(at.props) == 0 || others || at.raw["patternProperties"] != nil || len(at.same) > 0 || isPart(at.pointer) {
		return
	}
	known := slices.Sorted(maps.Keys(at.props))
	for _, name := range names {
		text, _ := name.(string)
		if at.props[text] != nil {
			continue
		}
		fix := "add it to `properties`"
		if meant := closestName(text, known); meant != "" {
			fix = "did you mean " + quote(meant) + "? Else " + fix
		}
		c.add(diag.SeverityWarning, at.pointer+"/required", "`required` names "+quote(printable(text))+", which `properties` does not have", fix)
	}
}

// isPart reports whether a sub-schema is for the same value as one around it, which may declare more names.
func isPart(pointer string) bool {
	return slices.ContainsFunc(strings.Split(pointer, "/"), func(key string) bool {
		return slices.Contains([]string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}, key)
	})
}
