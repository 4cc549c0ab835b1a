package model_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
)

// deviations lists every observed case in which this package knowingly answers otherwise than
// MozaiksAI: the field, the value, MozaiksAI's answer and ours. The compatibility page of the
// docs cites this table. Fields that MozaiksAI cannot build are listed with what they accept.
var deviations = []struct{ spec, value, theirs, ours, why string }{
	{`{"type":"float"}`, `"nan"`, `NaN`, `ERR(type)`, "NaN is not JSON"},
	{`{"type":"float"}`, `"inf"`, `Infinity`, `ERR(type)`, "infinity is not JSON"},
	{`{"type":"list"}`, `[1,"a"]`, `BUILD`, `[1,"a"]`, "a list without items is untyped"},
	{`{"type":"list","items":"Any"}`, `[1,"a"]`, `BUILD`, `[1,"a"]`, "Any is known"},
	{`{"type":"union","variants":["literal","null"],"values":["pre"]}`, `"pre"`, `BUILD`, `"pre"`, "literals inside unions"},
	{`{"type":"union","variants":["literal","null"],"values":["pre"]}`, `"post"`, `BUILD`, `ERR(enum)`, "literals inside unions"},
	{`{"type":"model","fields":{}}`, `{"x":1}`, `BUILD`, `{}`, "models inline"},
	{`{"type":"model","fields":{"x":{"type":"int"}}}`, `{"x":"1"}`, `BUILD`, `{"x":1}`, "models inline"},
	{`{"type":"any"}`, `[null]`, `BUILD`, `[null]`, "any is known"},
	{`{"type":"object"}`, `{"a":1}`, `BUILD`, `{"a":1}`, "JSON Schema's names are known"},
	{`{"type":"array","items":"int"}`, `["1"]`, `BUILD`, `[1]`, "JSON Schema's names are known"},
	{`{"type":"integer"}`, `"5"`, `BUILD`, `5`, "JSON Schema's names are known"},
	{`{"type":"number"}`, `"5.5"`, `BUILD`, `5.5`, "JSON Schema's names are known"},
	{`{"type":"boolean"}`, `"yes"`, `BUILD`, `true`, "JSON Schema's names are known"},
	{`{"type":"null"}`, `null`, `BUILD`, `null`, "JSON Schema's names are known"},
	{`{"type":"null"}`, `0`, `BUILD`, `ERR(type)`, "JSON Schema's names are known"},
	{`{"type":"STR"}`, `"a"`, `BUILD`, `"a"`, "case of type names is forgiven, with a warning"},
	{`{"type":"List[str]"}`, `["a"]`, `BUILD`, `["a"]`, "Python's spellings are known"},
	{`{"type":"Optional[int]"}`, `null`, `BUILD`, `null`, "Python's spellings are known"},
	{`{"type":"optional_int"}`, `"5"`, `BUILD`, `5`, "optional_ works before every type"},
	{`{"type":"optional_int"}`, `"__absent__"`, `BUILD`, `ERR(required)`, "like optional_str it stays required"},
	{`{"type":"dict[str, int]"}`, `{"a":"1"}`, `BUILD`, `{"a":1}`, "typed dicts"},
	{`{"type":"dict[str, int]"}`, `{"a":"x"}`, `BUILD`, `ERR(type)`, "typed dicts"},
	{`{"type":"int | null"}`, `null`, `BUILD`, `null`, "Python's spellings are known"},
	{`{"type":["string","null"]}`, `null`, `BUILD`, `null`, "JSON Schema's lists of types are known"},
	{`{"type":"Union[int, str]"}`, `"x"`, `BUILD`, `"x"`, "Python's spellings are known"},
	{`{"type":"list","items":{"type":"literal","values":["a"]}}`, `["b"]`, `BUILD`, `ERR(enum)`, "items may be a mapping"},
	{`{"type":"optional_list","items":"str","default":[]}`, `"__absent__"`, `BUILD`, `[]`, "optional_list takes a default"},
	{`{"type":"str","minLength":3,"pattern":"x","allowed_values":["q"],"enum":["q"]}`, `"a"`, `"a"`, `ERR(enum)`, "constraints are enforced"},
	{`{"type":"str","allowed_values":["q"]}`, `"a"`, `"a"`, `ERR(enum)`, "constraints are enforced"},
	{`{"type":"str","minLength":3}`, `"a"`, `"a"`, `ERR(minLength)`, "constraints are enforced"},
	{`{"type":"str","max_length":3}`, `"aaaa"`, `"aaaa"`, `ERR(maxLength)`, "constraints are enforced"},
	{`{"type":"str","min":3}`, `"a"`, `"a"`, `ERR(minLength)`, "constraints are enforced"},
	{`{"type":"str","pattern":"^x"}`, `"a"`, `"a"`, `ERR(pattern)`, "constraints are enforced"},
	{`{"type":"int","min":3}`, `"2"`, `2`, `ERR(minimum)`, "constraints are enforced"},
	{`{"type":"float","maximum":3.5}`, `3.51`, `3.51`, `ERR(maximum)`, "constraints are enforced"},
	{`{"type":"list","items":"str","max":1}`, `["a","b"]`, `["a","b"]`, `ERR(maxItems)`, "constraints are enforced"},
	{`{"type":"list","items":"str","allowed_values":["a"]}`, `["b"]`, `["b"]`, `ERR(enum)`, "on a list they limit the items"},
	{`{"type":"union","variants":["int","null"],"max":5}`, `"7"`, `7`, `ERR(maximum)`, "constraints are enforced"},
	{`{"type":"optional_str","enum":["a"]}`, `null`, `null`, `null`, "a closed set does not take null away"},
	{`{"type":"union","variants":["str","null"],"enum":["a"]}`, `null`, `null`, `null`, "a closed set does not take null away"},
	{`{"type":"str","nullable":true}`, `null`, `ERR(string_type)`, `null`, "nullable is honoured"},
	{`{"type":"N","nullable":true}`, `null`, `ERR(model_type)`, `null`, "nullable is honoured"},
	{`{"type":"str","required":false}`, `"__absent__"`, `ERR(missing)`, `"__absent__"`, "required: false is honoured"},
	{`{"enum":["a","b"]}`, `"a"`, `BUILD`, `"a"`, "a closed set needs no type"},
}

// laxField checks one value against a model M with the field f of the given spec.
func laxField(t *testing.T, spec, value string) string {
	t.Helper()
	defs := []model.Definition{define(t, "M", "f", spec), define(t, "N", "a", `{"type":"int"}`)}
	defs = append(defs, others(t)...)
	m := compileOne(t, "M", defs...)
	in := map[string]any{}
	if value != `"__absent__"` {
		in["f"] = tree(t, value)
	}
	before := text(t, in)
	out, violations := m.Check(in)
	require.Equal(t, before, text(t, in), "the input was changed")
	if len(violations) > 0 {
		require.Nil(t, out)
		return "ERR(" + violations[0].Rule + ")"
	}
	if got, ok := out["f"]; ok {
		return text(t, got)
	}
	return `"__absent__"`
}

// others are the models that lax_more.txt names.
func others(t *testing.T) []model.Definition {
	t.Helper()
	return []model.Definition{
		define(t, "P", "a", `{"type":"int"}`, "b", `{"type":"union","variants":["int","null"],"default":null}`),
		define(t, "Q", "a", `{"type":"int"}`, "c", `{"type":"int","default":0}`),
	}
}

// rule maps MozaiksAI's error kinds to this package's rules.
func rule(kind string) string {
	switch kind {
	case "missing":
		return model.RuleRequired
	case "enum":
		return model.RuleEnum
	default:
		return model.RuleType
	}
}

// observed reads lines `spec => value->result; …` of a file of observed cases.
func observed(t *testing.T, file string, each func(spec, value, result string)) (builds, schemas []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		spec, cases, isField := strings.Cut(strings.TrimSpace(line), " => ")
		switch {
		case !isField:
			schemas = append(schemas, line)
			continue
		case !strings.HasPrefix(spec, `{"type"`):
			builds = append(builds, spec+" => "+cases)
			continue
		case strings.HasPrefix(cases, "BUILD"):
			builds = append(builds, spec+" => BUILD")
			continue
		}
		for rest := cases; rest != ""; {
			d := json.NewDecoder(strings.NewReader(rest))
			var value json.RawMessage
			require.NoError(t, d.Decode(&value), rest)
			result, ok := strings.CutPrefix(rest[d.InputOffset():], "->")
			require.True(t, ok, rest)
			if strings.HasPrefix(result, "ERR(") || strings.HasPrefix(result, "NaN") || strings.HasPrefix(result, "Infinity") {
				result, rest, _ = strings.Cut(result, "; ")
				each(spec, string(value), result)
				continue
			}
			d = json.NewDecoder(strings.NewReader(result))
			var want json.RawMessage
			require.NoError(t, d.Decode(&want), result)
			rest = strings.TrimPrefix(result[d.InputOffset():], "; ")
			each(spec, string(value), string(want))
		}
	}
	return builds, schemas
}

// deviation returns our answer where it knowingly differs.
func deviation(t *testing.T, spec, value string) (string, bool) {
	t.Helper()
	for _, d := range deviations {
		if text(t, tree(t, d.spec)) == text(t, tree(t, spec)) && d.value == value {
			return d.ours, true
		}
	}
	return "", false
}

func TestObservedFieldTypesGiveTheObservedValues(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"testdata/field_types.txt", "testdata/lax_more.txt"} {
		cases := 0
		observed(t, file, func(spec, value, result string) {
			cases++
			want := result
			if kind, isError := strings.CutPrefix(result, "ERR("); isError {
				want = "ERR(" + rule(strings.TrimSuffix(kind, ")")) + ")"
			}
			got := laxField(t, spec, value)
			if ours, differs := deviation(t, spec, value); differs {
				require.Equal(t, ours, got, "%s %s", spec, value)
				return
			}
			if !strings.HasPrefix(want, "ERR(") {
				want = text(t, tree(t, want))
			}
			require.Equal(t, want, got, "%s %s in %s", spec, value, file)
		})
		require.Greater(t, cases, 70, file)
	}
}

func TestWhatMozaiksCannotBuildBuilds(t *testing.T) {
	t.Parallel()
	builds, _ := observed(t, "testdata/field_types.txt", func(string, string, string) {})
	require.Len(t, builds, 15)
	for _, line := range builds {
		spec, result, _ := strings.Cut(line, " => ")
		if result != "BUILD" {
			continue
		}
		compileOne(t, "M", define(t, "M", "f", spec))
	}
}

func TestDeviationsHoldAsListed(t *testing.T) {
	t.Parallel()
	for _, d := range deviations {
		want := d.ours
		require.Equal(t, want, laxField(t, d.spec, d.value), "%s %s", d.spec, d.value)
		require.NotEmpty(t, d.why)
	}
}
