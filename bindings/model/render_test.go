package model_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/diag"
)

// inlined is a schema with references written out and without titles.
func inlined(v any, defs map[string]any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = inlined(item, defs)
		}
		return out
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			return inlined(defs[strings.TrimPrefix(ref, "#/$defs/")], defs)
		}
		out := map[string]any{}
		for key, item := range v {
			if _, isText := item.(string); key != "$defs" && key != "$schema" && (key != "title" || !isText) && key != "description" {
				out[key] = inlined(item, defs)
			}
		}
		return out
	default:
		return v
	}
}

func TestJSONSchemaHasTheObservedShape(t *testing.T) {
	t.Parallel()
	_, schemas := observed(t, "testdata/field_types.txt", func(string, string, string) {})
	require.Len(t, schemas, 1)
	m := compileOne(t, "M",
		define(t, "M", "n", `{"type":"N"}`, "o", `{"type":"optional_str"}`, "l", `{"type":"literal","values":["a","b"]}`,
			"d", `{"type":"dict"}`, "q", `{"type":"optional_list","items":"str"}`),
		define(t, "N", "a", `{"type":"int","description":"d"}`))
	got, ok := tree(t, string(m.JSONSchema())).(map[string]any)
	require.True(t, ok)
	defs, _ := got["$defs"].(map[string]any)
	want, ok := inlined(tree(t, schemas[0]), nil).(map[string]any)
	require.True(t, ok)
	// The one deviation: MozaiksAI closes a free dict, so that a producer could only send {}.
	properties, ok := want["properties"].(map[string]any)
	require.True(t, ok)
	delete(properties["d"].(map[string]any), "additionalProperties") //nolint:forcetypeassert // shape of the file
	require.Equal(t, text(t, want), text(t, inlined(got, defs)))
	require.Equal(t, []string{"n", "o", "l", "d", "q"}, m.Fields())
	require.Contains(t, string(m.JSONSchema()), `"description":"d"`)
	require.Regexp(t, `"properties":\{"n":.*"o":.*"l":.*"d":.*"q":`, string(m.JSONSchema()))
}

func TestRecursiveModelsRenderAndCheck(t *testing.T) {
	t.Parallel()
	m := compileOne(t, "Tree~1/ä",
		define(t, "Tree~1/ä", "kids", `{"type":"list","items":"Tree~1/ä","default":[]}`, "pair", `{"type":"union","variants":["B ~/%","null"],"default":null}`),
		define(t, "B ~/%", "back", `{"type":"list[Tree~1/ä]"}`, "n", `{"type":"int"}`))
	out, violations := m.Check(tree(t, `{"kids":[{"kids":[]},{}],"pair":{"back":[{"x":1}],"n":"3"}}`))
	require.Empty(t, violations)
	require.JSONEq(t, `{"kids":[{"kids":[],"pair":null},{"kids":[],"pair":null}],"pair":{"back":[{"kids":[],"pair":null}],"n":3}}`, text(t, out))
	require.NoError(t, validator(t, m.JSONSchema()).Validate(out))
	_, violations = m.Check(tree(t, `{"kids":[{"kids":[{"kids":5}]}]}`))
	require.Equal(t, "/kids/0/kids/0/kids", violations[0].Path)
}

func validator(t require.TestingT, doc json.RawMessage) *jsonschema.Schema {
	s, err := jsonschema.CompileString("urn:test", string(doc))
	require.NoError(t, err, string(doc))
	return s
}

// specs draws a field's spec whose defaults, if any, are valid.
func specs(names []string, depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		simple := []string{"str", "int", "float", "bool", "optional_str", "dict", "List", "any", "optional_int", "list"}
		kinds := []string{"simple", "literal", "model", "bounded"}
		if depth > 0 {
			kinds = append(kinds, "list", "optional_list", "union", "inline", "nullable", "typed dict")
		}
		scalar := rapid.SampledFrom([]any{"a", "b", json.Number("1"), json.Number("2.5"), true, nil, ""})
		inner := func() any { return specs(names, depth-1).Draw(t, "inner") }
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "literal":
			values := rapid.SliceOfN(scalar, 1, 4).Draw(t, "values")
			return map[string]any{"type": "literal", "values": values}
		case "model":
			return map[string]any{"type": rapid.SampledFrom(names).Draw(t, "model")}
		case "bounded":
			return rapid.SampledFrom([]map[string]any{
				{"type": "str", "min": json.Number("1"), "max_length": json.Number("3")},
				{"type": "str", "pattern": "^[a-z]*$"},
				{"type": "int", "minimum": json.Number("-2"), "max": json.Number("7")},
				{"type": "float", "gt": json.Number("0"), "multipleOf": json.Number("0.5")},
				{"type": "optional_str", "enum": []any{"a", "b"}},
				{"type": "list", "items": "int", "uniqueItems": true, "max": json.Number("3")},
				{"type": "str", "default": "x"},
				{"type": "str", "required": false},
			}).Draw(t, "bounded")
		case "list", "optional_list":
			return map[string]any{"type": "optional_list", "items": inner()}
		case "union":
			return map[string]any{"type": "union", "variants": []any{inner(), inner(), "null"}}
		case "inline":
			return map[string]any{"type": "model", "fields": map[string]any{"p": inner(), "q": inner()}}
		case "nullable":
			return map[string]any{"type": "list", "items": inner(), "nullable": true}
		case "typed dict":
			return map[string]any{"type": "dict[str, list[int]]"}
		default:
			return map[string]any{"type": rapid.SampledFrom(simple).Draw(t, "type")}
		}
	})
}

// values draws JSON values that models of specs often nearly accept.
func values(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		leaves := []any{
			nil, true, false, "a", "b", "zz", "5", "yes", " 7 ", "1_0", "2.50", "[1]", json.Number("0"), json.Number("1"), json.Number("5.0"),
			json.Number("2.5"), json.Number("-1"), json.Number("1e30"), json.Number("12345678901234567890"),
		}
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		switch {
		case kind == 1 && depth > 0:
			return rapid.SliceOfN(values(depth-1), 0, 3).Draw(t, "list")
		case kind >= 2 && depth > 0:
			key := rapid.SampledFrom([]string{"f0", "f1", "f2", "p", "q", "x"})
			return rapid.MapOfN(key, values(depth-1), 0, 5).Draw(t, "object")
		default:
			return rapid.SampledFrom(leaves).Draw(t, "leaf")
		}
	})
}

func TestOutputsFitTheModelsSchemaAndInputsStayAsTheyWere(t *testing.T) {
	t.Parallel()
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"A", "B", "C"}
		defs := make([]model.Definition, len(names))
		for i, name := range names {
			defs[i].Name = name
			for j := range rapid.IntRange(0, 3).Draw(t, "fields") {
				defs[i].Fields = append(defs[i].Fields, model.Field{Name: "f" + string(rune('0'+j)), Spec: specs(names, 2).Draw(t, "spec")})
			}
		}
		models, problems := model.CompileMozaiks(defs)
		for _, p := range problems {
			require.Equal(t, diag.SeverityWarning, p.Severity, "%+v", p)
		}
		for _, name := range names {
			m := models[name]
			v := rapid.MapOfN(rapid.SampledFrom([]string{"f0", "f1", "f2", "x"}), values(3), 0, 4).Draw(t, "value")
			before := text(t, v)
			out, violations := m.Check(v)
			require.Equal(t, before, text(t, v))
			require.LessOrEqual(t, len(violations), model.MaxViolations)
			again, violationsAgain := m.Check(v)
			require.Equal(t, violations, violationsAgain)
			require.Equal(t, text(t, out), text(t, again))
			if len(violations) > 0 {
				continue
			}
			accepted++
			require.NoError(t, validator(t, m.JSONSchema()).Validate(out), "%s\n%s\n%s", m.JSONSchema(), before, text(t, out))
		}
	})
	require.Positive(t, accepted)
}

// schemas draws JSON Schemas from the keywords that the tree covers and some that it does not.
func schemas(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		out := map[string]any{}
		inner := func() any { return schemas(depth-1).Draw(t, "inner") }
		words := []string{"type", "enum", "bounds", "text"}
		if depth > 0 {
			words = append(words, "properties", "items", "anyOf", "oneOf", "allOf", "not", "ref", "extra", "closed", "default")
		}
		for _, word := range rapid.SliceOfNDistinct(rapid.SampledFrom(words), 0, 3, rapid.ID).Draw(t, "words") {
			switch word {
			case "type":
				all := []string{"null", "boolean", "integer", "number", "string", "array", "object"}
				list := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 2, rapid.ID).Draw(t, "types")
				names := make([]any, len(list))
				for i := range list {
					names[i] = list[i]
				}
				out["type"] = names
			case "enum":
				out["enum"] = []any{"a", json.Number("1"), nil, []any{json.Number("1.0")}}
			case "bounds":
				out["minimum"], out["multipleOf"] = json.Number("0"), json.Number("0.5")
			case "text":
				out["maxLength"], out["pattern"] = json.Number("2"), "^[a-z0-9]*$"
			case "properties":
				out["properties"] = map[string]any{"f0": inner(), "p": inner()}
				out["required"] = []any{"f0"}
			case "default":
				out["properties"] = map[string]any{"f1": map[string]any{"default": "a"}}
			case "items":
				out["items"] = inner()
			case "anyOf", "oneOf", "allOf":
				out[word] = []any{inner(), inner()}
			case "not":
				out["not"] = inner()
			case "ref":
				out["$ref"] = "#/$defs/T"
			case "extra":
				out["additionalProperties"] = inner()
			case "closed":
				out["additionalProperties"] = false
			}
		}
		return out
	})
}

func TestOutputsFitTheSchemaThatWasGiven(t *testing.T) {
	t.Parallel()
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		doc := schemas(2).Draw(t, "schema")
		doc["type"] = "object"
		doc["$defs"] = map[string]any{"T": map[string]any{"type": []any{"integer", "object"}, "properties": map[string]any{"p": schemas(0).Draw(t, "T")}}}
		m, err := model.CompileSchema("M", json.RawMessage(text(t, doc)))
		if err != nil {
			return
		}
		plain := validator(t, m.JSONSchema())
		for range 5 {
			v := rapid.MapOfN(rapid.SampledFrom([]string{"f0", "f1", "p", "x"}), values(2), 0, 4).Draw(t, "value")
			before := text(t, v)
			out, violations := m.Check(v)
			require.Equal(t, before, text(t, v))
			if len(violations) == 0 {
				accepted++
				require.NoError(t, plain.Validate(out), "%s\n%s\n%s", m.JSONSchema(), before, text(t, out))
			} else if slices.ContainsFunc(violations, func(f model.Violation) bool { return f.Rule == model.RuleTooComplex }) {
				continue
			}
			// what the schema admits as it is, the check admits, unless a default makes it unfit
			if !hasDefault(doc) && plain.Validate(v) == nil {
				require.Empty(t, violations, "%s\n%s", m.JSONSchema(), before)
			}
		}
	})
	require.Positive(t, accepted)
}

func hasDefault(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, hasDefault)
	case map[string]any:
		_, ok := v["default"]
		return ok || slices.ContainsFunc(slices.Collect(maps.Values(v)), hasDefault)
	default:
		return false
	}
}

func FuzzCompileSchemaAndCheck(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}`, `{"a":"5"}`)
	f.Add(`{"$ref":"#/$defs/T","$defs":{"T":{"properties":{"t":{"$ref":"#/$defs/T"}},"not":{"required":["x"]}}}}`, `{"t":{"t":{}}}`)
	f.Add(`{"anyOf":[{"properties":{"k":{"const":1e308}}},{"oneOf":[{},{"if":true}]}],"patternProperties":{"^a":{"multipleOf":1e-308}}}`, `{"a":1e308}`)
	f.Add(`{"$ref":"#/%24defs/~1","$defs":{"/":{"enum":[[],{}]}}}`, `{}`)
	f.Fuzz(func(t *testing.T, doc, value string) {
		start := time.Now()
		defer func() { require.Less(t, time.Since(start), 5*time.Second) }()
		m, err := model.CompileSchema("F", json.RawMessage(doc))
		if err != nil {
			return
		}
		in := map[string]any{}
		d := json.NewDecoder(strings.NewReader(value))
		d.UseNumber()
		if d.Decode(&in) != nil {
			return
		}
		_, violations := m.Check(in)
		require.LessOrEqual(t, len(violations), model.MaxViolations)
		require.NotEmpty(t, model.Feedback("F", violations))
	})
}
