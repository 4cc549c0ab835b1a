package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
)

func TestForeignSchemaIsCheckedExceptForWhatCannotBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, place, rule string }{
		"look-around":        {`{"properties":{"n":{"type":"integer"},"x":{"type":"string","pattern":"^(?!a)b"}},"required":["n"]}`, "/properties/x/pattern", `"^(?!a)b"`},
		"escape":             {`{"properties":{"n":{"type":"integer"},"x":{"pattern":"^[\\u4e00-\\u9fa5]+$"}},"required":["n"]}`, "/properties/x/pattern", "u4e00"},
		"long repetition":    {`{"properties":{"n":{"type":"integer"},"x":{"pattern":"^a{1,5000}$"}},"required":["n"]}`, "/properties/x/pattern", "a{1,5000}"},
		"in an alternative":  {`{"properties":{"n":{"type":"integer"},"x":{"anyOf":[{"type":"null"},{"type":"string","pattern":"(?=a)"}]}},"required":["n"]}`, "/properties/x/anyOf/1/pattern", "(?=a)"},
		"in a definition":    {`{"properties":{"n":{"type":"integer"},"x":{"$ref":"#/$defs/X"}},"required":["n"],"$defs":{"X":{"pattern":"(?=a)"}}}`, "/$defs/X/pattern", "(?=a)"},
		"pattern of names":   {`{"properties":{"n":{"type":"integer"}},"patternProperties":{"^(?!n)":{"type":"string"}},"additionalProperties":false,"required":["n"]}`, "/patternProperties/", "^(?!n)"},
		"external reference": {`{"properties":{"n":{"type":"integer"},"x":{"$ref":"https://example.com/x.json"}},"required":["n"]}`, "/properties/x", "$ref"},
		"draft 4":            {`{"properties":{"n":{"type":"integer"},"x":{"type":"number","minimum":0,"exclusiveMinimum":true}},"required":["n"]}`, "/properties/x/exclusiveMinimum", ""},
		"unknown type":       {`{"properties":{"n":{"type":"integer"},"x":{"type":"any"}},"required":["n"]}`, "/properties/x/type", "any"},
		"required in place":  {`{"properties":{"n":{"type":"integer"},"x":{"type":"string","required":true}},"required":["n"]}`, "/properties/x/required", ""},
		"empty enum":         {`{"properties":{"n":{"type":"integer"},"x":{"type":"string","enum":[]}},"required":["n"]}`, "/properties/x/enum", ""},
		"named like a word":  {`{"properties":{"n":{"type":"integer"},"pattern":{"type":"string","pattern":"(?!a)"}},"required":["n"]}`, "/properties/pattern/pattern", "(?!a)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, unchecked := model.CompileExternal("T", json.RawMessage(c.schema))
			require.NotNil(t, m)
			require.NotEmpty(t, unchecked)
			require.Contains(t, unchecked[0].Place(), c.place)
			require.Contains(t, unchecked[0].Place(), c.rule)
			args := map[string]any{"n": json.Number("1"), "x": "b", "pattern": "b"}
			if c.place == "/properties/x/exclusiveMinimum" {
				args["x"] = json.Number("5")
			}
			out, _, violations := m.Conform(args)
			require.Empty(t, violations)
			require.Equal(t, args["x"], out["x"], "what cannot be checked is not dropped")
			_, _, violations = m.Conform(map[string]any{"n": "no number"})
			require.NotEmpty(t, violations, "the rest is checked")
			require.JSONEq(t, c.schema, string(m.JSONSchema()), "it is shown as it was written")
		})
	}
}

func TestForeignSchemaOfWhichNothingCanBeCheckedChecksNothing(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{`, `true`, `{"$ref":"https://example.com/x"}`, `{"type":"array"}`, `{"$dynamicRef":"#x"}`, `{"maximum":1` + strings.Repeat("0", 400) + `}`} {
		m, unchecked := model.CompileExternal("T", json.RawMessage(schema))
		require.Nil(t, m, schema)
		require.NotEmpty(t, unchecked, schema)
	}
}
