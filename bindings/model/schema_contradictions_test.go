package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/diag"
)

func TestMisspeltKeywordIsReportedAtItsPlace(t *testing.T) {
	t.Parallel()
	m, err := model.CompileSchema("M", json.RawMessage(`{"type":"object","requird":["a"],"x-order":1,"note":"n","size":1,`+
		`"properties":{"a":{"typ":"string","minimun":3},"minlenght":{"minlength":1}}}`))
	require.NoError(t, err)
	var found []string
	for _, p := range m.Problems() {
		require.Equal(t, diag.SeverityWarning, p.Severity)
		found = append(found, p.Field+" "+p.Fix)
	}
	require.Equal(t, []string{
		"/requird did you mean `required`?", "/properties/a/minimun did you mean `minimum`?", "/properties/a/typ did you mean `type`?",
		"/properties/minlenght/minlength did you mean `minLength`?",
	}, found)
}

func TestRequiredNameThatNothingDeclaresIsReported(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string][]string{
		`{"required":["txt","b"],"properties":{"text":{},"b":{}}}`:        {"/required did you mean \"text\"? Else add it to `properties`"},
		`{"properties":{"a":{"required":["zzz"],"properties":{"b":{}}}}}`: {"/properties/a/required add it to `properties`"},
		`{"required":["x"]}`: nil,
		`{"required":["x"],"properties":{"a":{}},"additionalProperties":true}`:       nil,
		`{"required":["x"],"properties":{"a":{}},"patternProperties":{"^x":{}}}`:     nil,
		`{"required":["x"],"properties":{"a":{}},"allOf":[{"properties":{"x":{}}}]}`: nil,
		`{"properties":{"x":{}},"anyOf":[{"required":["x"],"properties":{"y":{}}}]}`: nil,
	} {
		m, err := model.CompileSchema("M", json.RawMessage(schema))
		require.NoError(t, err)
		var found []string
		for _, p := range m.Problems() {
			require.Equal(t, diag.SeverityWarning, p.Severity)
			found = append(found, p.Field+" "+p.Fix)
		}
		require.Equal(t, want, found, schema)
	}
}

func TestSchemaThatContradictsItselfIsReportedAtItsPlace(t *testing.T) {
	t.Parallel()
	property := func(p string) string { return `{"type":"object","properties":{"a":` + p + `}}` }
	for schema, want := range map[string]string{
		property(`{"type":"boolean","default":"no"}`):                                                          `error /properties/a/default: the default "no" does not fit: expected boolean, got string; write true or false`,
		property(`{"type":"integer","default":"five"}`):                                                        `error /properties/a/default: the default "five" does not fit`,
		property(`{"type":"string","default":1.10}`):                                                           `error /properties/a/default: the default 1.10 does not fit: expected string, got number; put it in quotes`,
		property(`{"type":"string","enum":["s","l"],"default":"m"}`):                                           `error /properties/a/default: the default "m" does not fit: expected one of "s", "l"`,
		property(`{"type":"integer","minimum":3,"default":2}`):                                                 `error /properties/a/default: the default 2 does not fit: expected at least 3`,
		property(`{"type":"array","items":{"type":"integer"},"default":["x"]}`):                                `error /properties/a/default: the default ["x"] does not fit: /0: expected integer`,
		property(`{"type":"object","required":["b"],"default":{}}`):                                            `error /properties/a/default: the default {} does not fit: /b: is missing`,
		property(`{"anyOf":[{"type":"integer"},{"type":"null"}],"default":"x"}`):                               `error /properties/a/default`,
		property(`{"$ref":"#/$defs/N","default":"x"},"b":{}},"$defs":{"N":{"type":"integer"}`):                 `error /properties/a/default`,
		property(`{"type":"string","default":null}`):                                                           `warning /properties/a/default: the default null does not fit`,
		property(`{"type":"integer","enum":["a","b"]}`):                                                        "error /properties/a/enum: no value of `enum` satisfies the other rules: expected integer, got string",
		property(`{"type":"integer","enum":[1,"b",null]}`):                                                     "warning /properties/a/enum: `enum` has values that the other rules exclude: \"b\", null",
		property(`{"type":"string","const":5}`):                                                                "error /properties/a/const: no value of `const`",
		property(`{"const":5,"enum":[6]}`):                                                                     "error /properties/a/enum: no value of `enum`",
		property(`{"type":"string","pattern":"^x","enum":["a"]}`):                                              "error /properties/a/enum: no value of `enum`",
		property(`{"type":"string","maxLength":2,"enum":["ab","abc"]}`):                                        "warning /properties/a/enum: `enum` has values that the other rules exclude: \"abc\"",
		property(`{"type":"integer","minimum":5,"maximum":3}`):                                                 "error /properties/a/minimum: no value satisfies both `minimum` and `maximum`",
		property(`{"type":"number","exclusiveMinimum":3,"maximum":3}`):                                         "error /properties/a/exclusiveMinimum: no value satisfies both",
		property(`{"minLength":3,"maxLength":2}`):                                                              "error /properties/a/minLength: no value satisfies both",
		property(`{"minItems":3,"maxItems":2}`):                                                                "error /properties/a/minItems: no value satisfies both",
		property(`{"minProperties":3,"maxProperties":2}`):                                                      "error /properties/a/minProperties: no value satisfies both",
		property(`{"type":"string","allOf":[{"type":"integer"}]}`):                                             "error /properties/a: no value has all the types",
		property(`{"type":"array","items":{"type":"object","properties":{"b":{"enum":[1],"type":"string"}}}}`): "error /properties/a/items/properties/b/enum",
		property(`{"type":"integer","allOf":[{"minimum":5},{"maximum":3}]}`):                                   "error /properties/a/allOf: no value satisfies both `minimum` and `maximum` of its parts",
		property(`{"allOf":[{"minLength":5},{"allOf":[{"maxLength":3}]}]}`):                                    "error /properties/a/allOf: no value satisfies both `minLength` and `maxLength`",
		property(`{"minItems":5,"allOf":[{"maxItems":3}]}`):                                                    "error /properties/a/allOf: no value satisfies both `minItems` and `maxItems`",
		property(`{"allOf":[{"const":"a"},{"const":"b"}]}`):                                                    "error /properties/a/allOf: no value of `const` satisfies the other parts: expected \"b\"",
		property(`{"allOf":[{"enum":["a","b"]},{"enum":["c"]}]}`):                                              "error /properties/a/allOf: no value of `enum` satisfies the other parts",
		property(`{"type":"integer","exclusiveMinimum":4,"exclusiveMaximum":5}`):                               "error /properties/a/exclusiveMinimum: no whole number lies between `exclusiveMinimum` and `exclusiveMaximum`",
		property(`{"type":"integer","minimum":1.5,"maximum":1.9}`):                                             "error /properties/a/minimum: no whole number lies between `minimum` and `maximum`",
		property(`{"type":"integer","minimum":-1.9,"exclusiveMaximum":-1}`):                                    "error /properties/a/minimum: no whole number lies between",
		property(`{"type":"integer","minimum":1,"maximum":4,"multipleOf":5}`):                                  "error /properties/a/minimum: no multiple of `multipleOf` lies between",
		property(`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.5,"multipleOf":0.5}`):             "error /properties/a/exclusiveMinimum: no multiple of `multipleOf` lies between",
		property(`{"type":"object","properties":{"b":{}},"additionalProperties":false,"minProperties":2}`):     "error /properties/a/minProperties: it asks for more keys",
		property(`{"type":"object","properties":{"b":false},"required":["b"]}`):                                "error /properties/a/required: it requires \"b\", which no value satisfies",
		property(`{"type":"array","minItems":3,"uniqueItems":true,"items":{"enum":["a","b"]}}`):                "error /properties/a/minItems: it asks for more items",
	} {
		m, err := model.CompileSchema("M", json.RawMessage(schema))
		require.NoError(t, err, schema)
		problems := m.Problems()
		require.Len(t, problems, 1, schema)
		p := problems[0]
		got := string(p.Severity) + " " + p.Field + ": " + p.Message + "; " + p.Fix
		require.True(t, strings.HasPrefix(got, want), "%s\n%s", schema, got)
		if strings.HasSuffix(p.Field, "/default") && p.Severity == diag.SeverityError {
			out, violations := m.Check(map[string]any{})
			require.Empty(t, violations)
			require.NotContains(t, out, "a", "a default that does not fit is never filled in")
		}
	}
	for _, schema := range []string{
		property(`{"type":"boolean","default":"TRUE"}`),
		property(`{"type":"integer","minimum":3,"maximum":3}`),
		property(`{"type":"integer","exclusiveMinimum":-1,"exclusiveMaximum":1}`),
		property(`{"type":"integer","minimum":1,"maximum":5,"multipleOf":5}`),
		property(`{"type":"number","minimum":0.1,"maximum":0.5,"multipleOf":0.25}`),
		property(`{"type":"integer","minimum":-1e300,"maximum":1e300,"multipleOf":7}`),
		property(`{"type":"integer","allOf":[{"minimum":3},{"maximum":5}]}`),
		property(`{"allOf":[{"enum":["a","b"]},{"enum":["b","c"]}]}`),
		property(`{"type":"object","properties":{"b":false}}`),
		property(`{"type":"integer","default":"7"}`),
		property(`{"type":["string","null"],"default":null}`),
		property(`{"type":"string","enum":["s","l"],"default":"s"}`),
		property(`{"type":"integer","enum":[1,2.0]}`),
		property(`{"enum":["a",1,null]}`),
		property(`{"type":"number","minimum":3,"maximum":3,"default":3}`),
		property(`{"type":"number","allOf":[{"type":"integer"}]}`),
		`{"type":"object","properties":{"next":{"$ref":"#","default":{}}}}`,
	} {
		m, err := model.CompileSchema("M", json.RawMessage(schema))
		require.NoError(t, err, schema)
		require.Empty(t, m.Problems(), schema)
	}
}

func TestDefaultIsCompletedAndCoercedLikeWhatItStandsFor(t *testing.T) {
	t.Parallel()
	m, err := model.CompileSchema("M", json.RawMessage(`{"type":"object","properties":{
		"a":{"type":"object","properties":{"n":{"type":"integer"},"b":{"type":"boolean","default":"true"}},"default":{"n":"5"}}}}`))
	require.NoError(t, err)
	out, violations := m.Check(map[string]any{})
	require.Empty(t, violations)
	require.Equal(t, map[string]any{"a": map[string]any{"n": json.Number("5"), "b": true}}, out)
}

func TestConstraintThatNoValueCanMeetLimitsNothing(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`{"type":"int","enum":["a","b"]}`:                          "no value of `enum` has the type of the field (integer), so it is ignored",
		`{"type":"str","allowed_values":[1,2]}`:                    "no value of `allowed_values` has the type of the field (string), so it is ignored",
		`{"type":"list","items":"int","allowed_values":["a"]}`:     "no value of `allowed_values` has the type of the field (integer), so it is ignored",
		`{"type":"int","enum":[5,"b"]}`:                            "`enum` has values of another type than the field, which are never met: \"b\"",
		`{"type":"int","min":6,"max":4}`:                           "no value satisfies both `minimum` and `maximum`, so they are ignored",
		`{"type":"str","min_length":6,"max_length":4}`:             "no value satisfies both `minLength` and `maxLength`, so they are ignored",
		`{"type":"bool","default":"perhaps"}`:                      "the default \"perhaps\" does not fit and reaches the tool as it is: expected boolean",
		`{"type":"literal","values":["a","b"],"default":"c"}`:      "the default \"c\" does not fit and reaches the tool as it is: expected one of \"a\", \"b\"",
		`{"type":"str","allowed_values":["a","b"],"default":"c"}`:  "the default \"c\" does not fit",
		`{"type":"union","variants":["int","null"],"default":"x"}`: "the default \"x\" does not fit",
	} {
		models, problems := model.CompileMozaiks([]model.Definition{define(t, "M", "f", spec)})
		require.Len(t, problems, 1, spec)
		require.Equal(t, diag.SeverityWarning, problems[0].Severity)
		require.True(t, strings.HasPrefix(problems[0].Message, want), "%s: %s", spec, problems[0].Message)
		value := map[string]any{"f": json.Number("5")}
		if strings.Contains(spec, "str") || strings.Contains(spec, "literal") {
			value["f"] = "a"
		}
		if strings.Contains(spec, "list") {
			value["f"] = []any{json.Number("5")}
		}
		if !strings.Contains(spec, "bool") {
			_, violations := models["M"].Check(value)
			require.Empty(t, violations, spec)
		}
	}
	for _, spec := range []string{`{"type":"str","default":null}`, `{"type":"int","default":"7"}`, `{"type":"float","enum":[1,2]}`, `{"type":"optional_str","enum":["a",null]}`} {
		_, problems := model.CompileMozaiks([]model.Definition{define(t, "M", "f", spec)})
		require.Empty(t, problems, spec)
	}
}

func TestClosedSetsLimitNothingWhereTheDefinitionIsOpen(t *testing.T) {
	t.Parallel()
	d := define(t, "M", "f", `{"type":"str","allowed_values":["a"]}`, "l", `{"type":"literal","values":["x"]}`)
	d.Open = true
	models, problems := model.CompileMozaiks([]model.Definition{d})
	require.Empty(t, problems)
	_, violations := models["M"].Check(map[string]any{"f": "b", "l": "x"})
	require.Empty(t, violations)
	_, violations = models["M"].Check(map[string]any{"f": "b", "l": "y"})
	require.Len(t, violations, 1, "MozaiksAI enforces literals")
	require.NotContains(t, string(models["M"].JSONSchema()), `"a"`)
}
