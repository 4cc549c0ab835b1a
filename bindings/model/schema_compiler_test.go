package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// result is the output of a check as JSON, or its violations as "rule@path".
func result(t *testing.T, m *model.Model, value string) string {
	t.Helper()
	in := tree(t, value)
	out, violations := m.Check(in)
	require.Equal(t, text(t, tree(t, value)), text(t, in), "the input was changed")
	if len(violations) == 0 {
		return text(t, out)
	}
	parts := make([]string, len(violations))
	for i, f := range violations {
		parts[i] = f.Rule + "@" + f.Path
	}
	return strings.Join(parts, " ")
}

func TestEngineColumnCoercesOnlyWithoutDoubt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, value, want string }{
		{`{"type":"integer"}`, `" -3 "`, `-3`},
		{`{"type":"integer"}`, `"007"`, `7`},
		{`{"type":"integer"}`, `3.0`, `3`},
		{`{"type":"integer"}`, `1e2`, `100`},
		{`{"type":"integer"}`, `1e30`, `1e30`},
		{`{"type":"integer"}`, `"+3"`, `type@/f`},
		{`{"type":"integer"}`, `"3.0"`, `type@/f`},
		{`{"type":"integer"}`, `"--3"`, `type@/f`},
		{`{"type":"integer"}`, `"٣"`, `type@/f`},
		{`{"type":"integer"}`, `""`, `type@/f`},
		{`{"type":"integer"}`, `true`, `type@/f`},
		{`{"type":"integer"}`, `3.5`, `type@/f`},
		{`{"type":"integer"}`, `null`, `type@/f`},
		{`{"type":"number"}`, `"3.5e2"`, `3.5e2`},
		{`{"type":"number"}`, `3`, `3`},
		{`{"type":"number"}`, `".5"`, `type@/f`},
		{`{"type":"number"}`, `"NaN"`, `type@/f`},
		{`{"type":"number"}`, `"1e999"`, `type@/f`},
		{`{"type":"boolean"}`, `" TRUE "`, `true`},
		{`{"type":"boolean"}`, `"false"`, `false`},
		{`{"type":"boolean"}`, `"yes"`, `type@/f`},
		{`{"type":"boolean"}`, `1`, `type@/f`},
		{`{"type":"string"}`, `5`, `type@/f`},
		{`{"type":"string"}`, `true`, `type@/f`},
		{`{"type":["string","null"]}`, `"null"`, `"null"`},
		{`{"type":["integer","null"]}`, `"5"`, `5`},
		{`{"type":["integer","null"]}`, `"null"`, `type@/f`},
		{`{"type":["integer","boolean"]}`, `"5"`, `type@/f`},
		{`{"type":["integer","string"]}`, `"5"`, `"5"`},
		{`{"type":"object"}`, `"{\"a\":1}"`, `{"a":1}`},
		{`{"type":"object"}`, `"[1]"`, `type@/f`},
		{`{"type":"array","items":{"type":"integer"}}`, `"[\"1\",2]"`, `[1,2]`},
		{`{"type":"array"}`, `1`, `type@/f`},
		{`{"type":"array"}`, `"[1,1"`, `type@/f`},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, `"5"`, `"5"`},
		{`{"anyOf":[{"type":"integer"},{"type":"string","minLength":9}]}`, `"5"`, `minLength@/f`},
		{`{"anyOf":[{"type":"integer"},{"type":"string","minLength":9},{"type":"string","pattern":"x"}]}`, `"5"`, `anyOf@/f`},
		{`{"anyOf":[{"type":"string"},{"type":"object","properties":{"n":{"type":"integer"}}}]}`, `{"n":"5"}`, `{"n":5}`},
		{`{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `"5"`, `5`},
		{`{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `null`, `null`},
	} {
		m := schema(t, `{"type":"object","properties":{"f":`+c.schema+`},"required":["f"]}`)
		want := c.want
		if !strings.Contains(want, "@") {
			want = `{"f":` + want + `}`
		}
		require.Equal(t, want, result(t, m, `{"f":`+c.value+`}`), "%s %s", c.schema, c.value)
	}
}

func TestSchemaKeywordsAreEnforced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, value, want string }{
		{`{"properties":{"a":{"default":5},"b":{"default":[1]}}}`, `{}`, `{"a":5,"b":[1]}`},
		{`{"properties":{"a":{"type":"integer","default":"7"},"b":{"type":["boolean","null"],"default":"TRUE"}}}`, `{}`, `{"a":7,"b":true}`},
		{`{"properties":{"a":{"type":"integer","default":7.0},"b":{"type":"string","default":null}}}`, `{}`, `{"a":7,"b":null}`},
		{`{"properties":{"a":{}}}`, `{"x":1}`, `{"x":1}`},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"x":1,"a":2}`, `{"a":2}`},
		{`{"additionalProperties":{"type":"integer"}}`, `{"x":"1"}`, `{"x":1}`},
		{`{"additionalProperties":{"type":"integer"}}`, `{"x":"q"}`, `type@/x`},
		{`{"required":["z"]}`, `{}`, `required@/z`},
		{`{"properties":{"a":{"const":{"x":[1.0]}}}}`, `{"a":{"x":[1]}}`, `{"a":{"x":[1]}}`},
		{`{"properties":{"a":{"const":1}}}`, `{"a":true}`, `const@/a`},
		{`{"properties":{"a":{"enum":[1,"b"]}}}`, `{"a":1.0}`, `{"a":1}`},
		{`{"properties":{"a":{"enum":[1,"b"]}}}`, `{"a":"c"}`, `enum@/a`},
		{`{"properties":{"a":{"minimum":12345678901234567890}}}`, `{"a":12345678901234567889}`, `minimum@/a`},
		{`{"properties":{"a":{"exclusiveMaximum":0.1}}}`, `{"a":0.1}`, `exclusiveMaximum@/a`},
		{`{"properties":{"a":{"exclusiveMinimum":-1e-300}}}`, `{"a":-1e-300}`, `exclusiveMinimum@/a`},
		{`{"properties":{"a":{"multipleOf":0.01}}}`, `{"a":1.23}`, `{"a":1.23}`},
		{`{"properties":{"a":{"multipleOf":0.01}}}`, `{"a":1.234}`, `multipleOf@/a`},
		{`{"properties":{"a":{"multipleOf":1e-308}}}`, `{"a":1e308}`, `{"a":1e308}`},
		{`{"properties":{"a":{"maxLength":2}}}`, `{"a":"äöü"}`, `maxLength@/a`},
		{`{"properties":{"a":{"pattern":"^x+$"}}}`, `{"a":"y"}`, `pattern@/a`},
		{`{"properties":{"a":{"minItems":2,"uniqueItems":true}}}`, `{"a":[1,1.0]}`, `uniqueItems@/a`},
		{`{"properties":{"a":{"maxItems":0}}}`, `{"a":[1]}`, `maxItems@/a`},
		{`{"minProperties":1}`, `{}`, `minProperties@`},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, `maxProperties@`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `type@/a`},
		{`{"properties":{"a":{"format":"date"}}}`, `{"a":"x"}`, `{"a":"x"}`},
		{`{"properties":{"a/b":{"properties":{"~":{"type":"null"}}}}}`, `{"a/b":{"~":1}}`, `type@/a~1b/~0`},
		{
			`{"$ref":"#/$defs/T","$defs":{"T":{"properties":{"kids":{"items":{"$ref":"#/$defs/T"}},"n":{"type":"integer"}}}}}`,
			`{"kids":[{"n":"1","kids":[{"n":"2"}]}]}`, `{"kids":[{"kids":[{"n":2}],"n":1}]}`,
		},
		{`{"properties":{"t":{"$ref":"#"},"n":{"type":"integer"}}}`, `{"t":{"t":{"n":"x"}}}`, `type@/t/t/n`},
		{`{"properties":{"a":{"$ref":"#/properties/b"},"b":{"type":"integer"}}}`, `{"a":"1"}`, `{"a":1}`},
		{`{"allOf":[{"properties":{"a":{"type":"integer"}}},{"required":["a"]}]}`, `{"a":"1"}`, `{"a":1}`},
		{`{"allOf":[{"properties":{"a":{"type":"integer"}}},{"required":["a"]}]}`, `{}`, `required@/a`},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"c":1}`, `anyOf@`},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1,"b":2}`, `oneOf@`},
		{
			`{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"integer"}},"required":["k"]},{"properties":{"k":{"const":"b"}},"required":["k"]}]}`,
			`{"k":"a","n":"1"}`, `{"k":"a","n":1}`,
		},
		// only the full schema check knows these
		{`{"properties":{"a":{"not":{"type":"string"}}}}`, `{"a":"secret"}`, `not@/a`},
		{`{"properties":{"a":{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}}}`, `{"a":["x","y"]}`, `type@/a/1`},
		{`{"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false}`, `{"x1":1}`, `{"x1":1}`},
		{`{"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false}`, `{"y":1}`, `additionalProperties@`},
		{`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, `required@`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `dependentRequired@`},
		{`{"properties":{"a":{"contains":{"const":1}}}}`, `{"a":[2]}`, `const@/a/0`},
		{`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"b":1}`, `unevaluatedProperties@/b`},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `maxLength@/ab`},
	} {
		require.Equal(t, c.want, result(t, schema(t, c.schema), c.value), "%s %s", c.schema, c.value)
	}
}

func TestHostileSchemasAreRefusedQuicklyAndNamed(t *testing.T) {
	t.Parallel()
	doubling := func(place string) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/a25","$defs":{"a0":{"type":"object"}`)
		for i := 1; i <= 25; i++ {
			fmt.Fprintf(&b, `,"a%d":%s`, i, strings.ReplaceAll(place, "REF", fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i-1)))
		}
		return b.String() + "}}"
	}
	for name, doc := range map[string]string{
		"doubling in allOf":          doubling(`{"allOf":[REF,REF]}`),
		"doubling in not":            doubling(`{"not":{"anyOf":[REF,REF]}}`),
		"doubling through members":   doubling(`{"allOf":[{"properties":{"x":REF}},{"properties":{"x":REF}}]}`),
		"doubling through recursion": `{"allOf":[{"properties":{"x":{"$ref":"#"}}},{"additionalProperties":{"$ref":"#"}},{"patternProperties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"}}}]}`,
		"loop":                       `{"$ref":"#"}`,
		"mutual loop":                `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`,
		"file reference":             `{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`,
		"http reference in not":      `{"not":{"$ref":"http://127.0.0.1/x"}}`,
		"reference outside the root": `{"properties":{"a":{"$ref":"other.json#/a"}}}`,
		"dangling reference":         `{"properties":{"a":{"$ref":"#/$defs/nope"}}}`,
		"new base":                   `{"properties":{"a":{"$id":"file:///etc/","$ref":"#/x"}}}`,
		"dynamic reference":          `{"$dynamicRef":"#x"}`,
		"look-ahead":                 `{"properties":{"a":{"pattern":"(?=a)"}}}`,
		"bad pattern in unused part": `{"$defs":{"x":{"pattern":"("}}}`,
		"bad pattern of properties":  `{"patternProperties":{"(":{}}}`,
		"huge repeat":                `{"properties":{"a":{"pattern":"(a{1000}){1000}"}}}`,
		"large program":              `{"properties":{"a":{"pattern":"` + strings.Repeat("a{1000}", 70) + `"}}}`,
		"long pattern":               `{"properties":{"a":{"pattern":"` + strings.Repeat("a", 513) + `"}}}`,
		"deep":                       strings.Repeat(`{"items":`, 63) + `{}` + strings.Repeat(`}`, 63) + ` `,
		"too deep for JSON":          strings.Repeat(`{"items":`, 100) + `{}` + strings.Repeat(`}`, 100),
		"large":                      `{"title":"` + strings.Repeat("a", 256<<10) + `"}`,
		"huge number":                `{"properties":{"a":{"minimum":1e9999999}}}`,
		"no JSON":                    `{"type":`,
		"duplicate key":              `{"type":"object","type":"object"}`,
		"not an object":              `[]`,
		"true":                       `true`,
		"null":                       `null`,
		"empty":                      ``,
		"type":                       `{"type":"strin"}`,
		"root type":                  `{"type":"string"}`,
		"enum":                       `{"enum":[]}`,
		"required":                   `{"required":"a"}`,
		"properties":                 `{"properties":[]}`,
		"child":                      `{"properties":{"a":5}}`,
		"anyOf":                      `{"anyOf":{}}`,
		"multipleOf":                 `{"properties":{"a":{"multipleOf":0}}}`,
		"minLength":                  `{"properties":{"a":{"minLength":-1}}}`,
		"bad keyword of the rest":    `{"dependentRequired":{"a":"SECRET"}}`,
	} {
		if name == "deep" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			m, err := model.CompileSchema("Bomb", json.RawMessage(doc))
			require.Error(t, err)
			require.Nil(t, m)
			require.Contains(t, err.Error(), `"Bomb"`)
			require.NotContains(t, err.Error(), "SECRET")
			require.Less(t, len(err.Error()), 2<<10)
			require.Contains(t, []events.Code{events.CodeBadArgs, events.CodeTooLarge}, events.CodeOf(err))
			require.Less(t, time.Since(start), 5*time.Second)
		})
	}
}

func TestEveryProblemOfASchemaIsReportedTogetherWithItsFix(t *testing.T) {
	t.Parallel()
	_, err := model.CompileSchema("M", json.RawMessage(`{"type":"object","required":"title","properties":{
		"title":{"type":"strng","pattern":"("},"n":{"type":"int","minimum":"one"},"kids":{"items":{"$ref":"#/$defs/Kid"}},"bad":7,"ok":{"type":"string"}}}`))
	var refused *model.SchemaError
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, events.ErrBadArgs)
	places := make([]string, len(refused.Problems))
	for i, p := range refused.Problems {
		require.Equal(t, "M", p.Model)
		require.NotEmpty(t, p.Fix, p.Message)
		places[i] = p.Field
	}
	require.Equal(t, []string{
		"/properties/bad", "/properties/kids/items", "/properties/n/minimum", "/properties/n/type",
		"/properties/title/pattern", "/properties/title/type", "/required",
	}, places)
	require.Equal(t, `did you mean "integer"? Types are null, boolean, integer, number, string, array, object`, refused.Problems[3].Fix)
	require.Equal(t, `did you mean "string"? Types are null, boolean, integer, number, string, array, object`, refused.Problems[5].Fix)
	require.Contains(t, err.Error(), `compile JSON Schema: bad_args: the schema of model "M" at "/properties/bad": a schema is an object`)
	require.Contains(t, err.Error(), "(and 6 more)")
}

func TestManyProblemsOfASchemaAreBounded(t *testing.T) {
	t.Parallel()
	_, err := model.CompileSchema("M", json.RawMessage(`{"anyOf":[`+strings.TrimSuffix(strings.Repeat(`{"type":"x"},`, 5000), ",")+`]}`))
	var refused *model.SchemaError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Problems, 50)
}

func TestOptionalFieldsAreThoseThatAnObjectMayLack(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"required":["a"],"properties":{"a":{},"b":{"default":1},"c":{}}}`:                                                    "c",
		`{"properties":{"a":{},"b":{}},"allOf":[{"required":["a"]}]}`:                                                          "b",
		`{"properties":{"a":{},"b":{},"c":{}},"anyOf":[{"required":["a","b"]},{"required":["a"]}]}`:                            "b c",
		`{"$ref":"#/$defs/M","$defs":{"M":{"required":["a"],"properties":{"a":{},"b":{}}}}}`:                                   "b",
		`{"required":["a"],"properties":{"a":{}}}`:                                                                             "",
		`{"properties":{"a":{}},"anyOf":[{"$ref":"#/$defs/A"}],"$defs":{"A":{"anyOf":[{"required":["a"]}],"title":"nested"}}}`: "",
	} {
		require.Equal(t, want, strings.Join(schema(t, doc).Optional(), " "), doc)
	}
	models, problems := model.CompileMozaiks([]model.Definition{{Name: "M", Fields: []model.Field{
		{Name: "a", Spec: map[string]any{"type": "str"}},
		{Name: "b", Spec: map[string]any{"type": "str", "required": false}},
		{Name: "c", Spec: map[string]any{"type": "str", "default": nil}},
	}}})
	require.Empty(t, problems)
	require.Equal(t, []string{"b"}, models["M"].Optional())
}

func TestDeepButHonestSchemaCompiles(t *testing.T) {
	t.Parallel()
	schema(t, `{"properties":{"a":`+strings.Repeat(`{"items":`, 55)+`{}`+strings.Repeat(`}`, 55)+`}}`)
}

func TestUnionsThatExplodeWithTheDataEndAsTooComplex(t *testing.T) {
	t.Parallel()
	alt := func(k string) string {
		return `{"type":"object","properties":{"c":{"$ref":"#/$defs/T"},"k":{"const":"` + k + `"}},"required":["k"]}`
	}
	m := schema(t, `{"$ref":"#/$defs/T","$defs":{"T":{"anyOf":[`+alt("a")+`,`+alt("b")+`,`+alt("c")+`]}}}`)
	start := time.Now()
	require.Equal(t, `too_complex@`, result(t, m, strings.Repeat(`{"k":"z","c":`, 60)+`{}`+strings.Repeat(`}`, 60)))
	require.Less(t, time.Since(start), 5*time.Second)
	require.JSONEq(t, `{"c":{"k":"b"},"k":"c"}`, result(t, m, `{"k":"c","c":{"k":"b"}}`))
}

func TestFullCheckRefusesToRunTooLong(t *testing.T) {
	t.Parallel()
	m := schema(t, `{"additionalProperties":{"$ref":"#/$defs/T"},"$defs":{"T":{"properties":{"x":{"$ref":"#/$defs/T"},"s":{"not":{"const":1}}},
		"patternProperties":{"^x$":{"$ref":"#/$defs/T"}}}}}`)
	require.JSONEq(t, `{"a":{"x":{"s":2}}}`, result(t, m, `{"a":{"x":{"s":2}}}`))
	require.Equal(t, `too_complex@`, result(t, m, `{"a":`+strings.Repeat(`{"x":`, 60)+`{}`+strings.Repeat(`}`, 60)+`}`))
}

func TestSchemaFieldsKeepDocumentOrder(t *testing.T) {
	t.Parallel()
	m := schema(t, `{"$defs":{"R":{"properties":{"z":{},"a":{"properties":{"q":{}}},"m":true},"required":["k"]}},"$ref":"#/$defs/R"}`)
	require.Equal(t, []string{"z", "a", "m"}, m.Fields())
}

func TestValuesThatAreNotJSONAreViolationsNotPanics(t *testing.T) {
	t.Parallel()
	m := schema(t, `{"properties":{"a":{"type":"number","minimum":1},"b":{"enum":[1]},"c":{"not":{"const":3}}}}`)
	for _, v := range []any{1.5, json.Number("1e9999999"), json.Number("x"), json.Number(""), json.Number(strings.Repeat("9", 100)), struct{}{}} {
		for _, key := range []string{"a", "b"} {
			_, violations := m.Check(map[string]any{key: v})
			require.Len(t, violations, 1)
		}
		_, _ = m.Check(map[string]any{"c": v})
	}
	_, violations := m.Check("x")
	require.Equal(t, []model.Violation{{Rule: "type", Expected: "object", GotType: "string"}}, violations)
}
