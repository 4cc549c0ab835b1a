package flow

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// at walks a path with dots; it returns what the schema states about its end.
func at(t *testing.T, schema, path string) (*look, place, declaration) {
	t.Helper()
	s, err := NewSchema(json.RawMessage(schema))
	require.NoError(t, err)
	budget := budgets{visits: maxVisits, names: maxNames}
	l, p := s.look(&budget)
	if path == "" {
		return l, p, declared
	}
	for segment := range strings.SplitSeq(path, ".") {
		below, d := l.field(p, segment)
		if d != declared {
			return l, p, d
		}
		p = below
	}
	return l, p, declared
}

func TestTypesOfASchemaAreASet(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"integer"}`:               "integer",
		`{"type":"number"}`:                "number",
		`{"type":["string","null"]}`:       "null string",
		`{}`:                               "array boolean null number object string",
		`true`:                             "array boolean null number object string",
		`false`:                            "",
		`{"enum":["a",1,null]}`:            "integer null string",
		`{"const":2.5}`:                    "number",
		`{"const":3.0}`:                    "integer",
		`{"const":5e-1}`:                   "number",
		`{"type":"string","enum":["a",1]}`: "string",
		`{"allOf":[{"type":["string","integer"]},{"type":["integer","null"]}]}`:  "integer",
		`{"anyOf":[{"type":"string"},{"type":"array"}]}`:                         "array string",
		`{"oneOf":[{"type":"string"},{"const":null}],"type":["null","boolean"]}`: "null",
		`{"$ref":"#/$defs/x","$defs":{"x":{"type":"boolean"}}}`:                  "boolean",
		`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"boolean"}}}`:             "boolean",
		`{"$ref":"other.json"}`: "array boolean null number object string",
		`{"$ref":"#/$defs/a%20b","$defs":{"a b":{"type":"null"}}}`:                      "null",
		`{"$ref":"#/$defs/none"}`:                                                       "array boolean null number object string",
		`{"$ref":"#"}`:                                                                  "array boolean null number object string",
		`{"type":"future"}`:                                                             "array boolean null number object string",
		`{"allOf":[{"type":"number"},{"type":"integer"}]}`:                              "integer",
		`{"type":"integer","anyOf":[{"minimum":1},{"type":"string"}]}`:                  "integer",
		`{"$ref":"#/$defs/x","type":"string","$defs":{"x":{"type":"boolean"}}}`:         "",
		`{"allOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"enum":[true,false]}}}`:          "boolean",
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"type":"object"}}}`: "object",
	} {
		l, p, _ := at(t, schema, "")
		names := l.types(p).names()
		if want == "number" && strings.Contains(schema, "2.5") {
			require.Equal(t, typeFraction, l.types(p))
			continue
		}
		require.Equal(t, want, strings.Join(names, " "), schema)
	}
}

func TestFieldsAreDeclaredThroughTheWholeSchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema, path string
		want         declaration
		types        string
	}{
		{`{"properties":{"a":{"type":"string"}}}`, "a", declared, "string"},
		{`{"properties":{"a":{"type":"string"}}}`, "b", undeclared, ""},
		{`{"properties":{"a":{"type":"string"}}}`, "a.b", undeclared, ""},
		{`{"properties":{"a":{}}}`, "a.b.c", open, ""},
		{`{"properties":{"a":{"type":"object"}}}`, "a.b", open, ""},
		{`{"properties":{"a":{"type":"array"}}}`, "a.0", open, ""},
		{`{"properties":{"a":{"type":"array"}}}`, "a.length", undeclared, ""},
		{`{"properties":{"a":{"items":{"type":"integer"}}}}`, "a.7", declared, "integer"},
		{`{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, "0", declared, "string"},
		{`{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, "1", declared, "integer"},
		{`{"prefixItems":[{"type":"string"}]}`, "1", undeclared, ""},
		{`{"prefixItems":[{"type":"string"}],"items":false}`, "1", undeclared, ""},
		{`{"items":[{"type":"string"}],"additionalItems":{"type":"null"}}`, "1", declared, "null"},
		{`{"additionalProperties":{"type":"string"}}`, "any", declared, "string"},
		{`{"additionalProperties":true,"properties":{"a":{"type":"string"}}}`, "any", declared, "array boolean null number object string"},
		{`{"additionalProperties":false}`, "any", undeclared, ""},
		{`{"patternProperties":{"^x_":{"type":"integer"}}}`, "x_1", declared, "integer"},
		{`{"patternProperties":{"^x_":{"type":"integer"}}}`, "y", undeclared, ""},
		{`{"patternProperties":{"(?=a)":{"type":"integer"}}}`, "y", declared, "integer"},
		{`{"properties":{"x_1":{"type":["integer","string"]}},"patternProperties":{"^x_":{"type":"integer"}}}`, "x_1", declared, "integer"},
		{`{"$ref":"#/$defs/p","$defs":{"p":{"properties":{"a":{"type":"null"}}}}}`, "a", declared, "null"},
		{`{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}]}`, "b", declared, "string"},
		{`{"allOf":[{"properties":{"a":{"type":["string","null"]}}},{"properties":{"a":{"type":["null","array"]}}}]}`, "a", declared, "null"},
		{`{"allOf":[{"properties":{"a":{}}},{"required":["b"]}]}`, "b", undeclared, ""},
		{`{"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"type":"integer"}}}]}`, "a", declared, "integer string"},
		{`{"anyOf":[{"properties":{"a":{"type":"string"}}},{"type":"null"}]}`, "a", declared, "string"},
		{`{"anyOf":[{"properties":{"a":{"type":"string"}}},{"type":"null"}]}`, "b", undeclared, ""},
		{`{"anyOf":[{"properties":{"a":{"type":"string"}}},{"type":"object"}]}`, "a", declared, "array boolean null number object string"},
		{`{"anyOf":[{"properties":{"a":{"type":"string"}}},{"type":"object"}]}`, "b", open, ""},
		{`{"properties":{"a":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, "b", undeclared, ""},
		{`{"properties":{"n":{"$ref":"#"},"v":{"type":"integer"}}}`, "n.n.n.v", declared, "integer"},
		{`{"type":["object","null"],"properties":{"2024":{"type":"string"}}}`, "2024", declared, "string"},
		{`{"properties":{"a":false}}`, "a.b", undeclared, ""},
	} {
		l, p, d := at(t, c.schema, c.path)
		require.Equal(t, c.want, d, "%s of %s", c.path, c.schema)
		if d == declared {
			require.Equal(t, c.types, strings.Join(l.types(p).names(), " "), "%s of %s", c.path, c.schema)
		}
	}
}

func TestASchemaThatIsABombCostsItsBudgetOnly(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/0","$defs":{"end":{"properties":{"a":{"type":"string"}}}`)
	for i := range 40 {
		next := `"#/$defs/end"`
		if i < 39 {
			next = `"#/$defs/` + string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10)) + `"`
		}
		name := string(rune('0'+i/10)) + string(rune('0'+i%10))
		if i == 0 {
			name = "0"
		}
		b.WriteString(`,"` + name + `":{"anyOf":[{"$ref":` + next + `},{"$ref":` + next + `}]}`)
	}
	b.WriteString(`}}`)
	s, err := NewSchema(json.RawMessage(b.String()))
	require.NoError(t, err)
	budget := budgets{visits: maxVisits, names: maxNames}
	l, p := s.look(&budget)
	_, d := l.field(p, "a")
	require.NotEqual(t, undeclared, d, "what is not looked at is possible")
	l.types(p)
	require.Less(t, maxVisits-budget.visits, 1<<20)
}

func TestPatternsCostEachCompilationTheSameAndASchemaKeepsFewOfThem(t *testing.T) {
	t.Parallel()
	s, err := NewSchema([]byte(`{}`))
	require.NoError(t, err)
	var left []int
	for range 2 {
		all := budgets{visits: maxVisits, names: maxNames}
		look, _ := s.look(&all)
		for i := range 200 {
			p := look.pattern("^" + strings.Repeat("a?", 200) + strconv.Itoa(i))
			require.Equal(t, p.steps, look.pattern("^"+strings.Repeat("a?", 200)+strconv.Itoa(i)).steps)
		}
		left = append(left, all.visits)
	}
	require.Less(t, left[0], maxVisits)
	require.Equal(t, left[0], left[1])
	require.Positive(t, s.kept.Load())
	require.LessOrEqual(t, s.kept.Load(), int64(maxKeptSteps))
}
