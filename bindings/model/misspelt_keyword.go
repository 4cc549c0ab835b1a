package model

import (
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/nearest"
)

// vocabulary is the one of JSON Schema 2020-12 and of the drafts before it, and the annotations that
// generators of schemas write. None is a misspelling of another one.
//
//nolint:gochecknoglobals // a read-only table
var vocabulary = strings.Fields(`type properties required enum const default items additionalProperties
	minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format
	minItems maxItems uniqueItems prefixItems contains minContains maxContains additionalItems unevaluatedItems
	minProperties maxProperties patternProperties propertyNames dependentRequired dependentSchemas dependencies unevaluatedProperties
	allOf anyOf oneOf not if then else title description examples example deprecated readOnly writeOnly nullable discriminator
	contentEncoding contentMediaType contentSchema definitions id xml externalDocs
	$schema $id $ref $defs $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $vocabulary $comment`)

// misspelt reports keys of a sub-schema that are not keywords and are spelt like one: JSON Schema
// ignores what it does not know, so that such a rule limits nothing. Other keys are extensions.
func (c *contradictions) misspelt(at *sub) {
	for _, key := range slices.Sorted(maps.Keys(at.raw)) {
		if slices.Contains(vocabulary, key) || strings.HasPrefix(key, "x-") {
			continue
		}
		meant := nearest.Of(key, vocabulary, nearest.Rule{Fold: strings.ToLower, Edits: maxTypos})
		if meant != "" {
			c.add(diag.SeverityWarning, at.pointer+"/"+pathToken(key), "`"+key+"` is not a keyword of JSON Schema and is ignored", "did you mean `"+meant+"`?")
		}
	}
}

// maxTypos is how many edits make a keyword of a word; short words are too much alike.
func maxTypos(_, keyword string) int {
	const short, long = 4, 6
	switch n := len(keyword); {
	case n < short:
		return 0
	case n < long:
		return 1
	}
	return 2
}
