package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
)

func TestViolationsNamePathRuleAndWhatWasMeant(t *testing.T) {
	t.Parallel()
	m := compileOne(t, "M",
		define(t, "M", "user_name", `{"type":"str"}`, "level", `{"type":"literal","values":["low","high"]}`,
			"steps", `{"type":"list","items":"Step"}`, "age", `{"type":"int","max":9}`),
		define(t, "Step", "name", `{"type":"optional_str"}`))
	_, violations := m.Check(tree(t, `{"userName":"x","level":"hihg","steps":[{"name":5},{}],"age":"10"}`))
	require.Equal(t, []model.Violation{
		{Path: "/user_name", Rule: "required", Expected: `string, under the key "user_name" instead of "userName"`, GotType: "absent", DidYouMean: "user_name"},
		{Path: "/level", Rule: "enum", Expected: `one of "low", "high"`, GotType: "string", Allowed: []any{"low", "high"}, DidYouMean: "high"},
		{Path: "/steps/0/name", Rule: "type", Expected: "string or null", GotType: "number"},
		{Path: "/steps/1/name", Rule: "required", Expected: "string or null", GotType: "absent"},
		{Path: "/age", Rule: "maximum", Expected: "at most 9", GotType: "number"},
	}, violations)
	require.Equal(t, `Your output does not fit the model "M". Correct these 5 errors:
- /user_name: is missing; expected string, under the key "user_name" instead of "userName".
- /level: expected one of "low", "high", got another value (string). Did you mean "high"?
- /steps/0/name: expected string or null, got number.
- /steps/1/name: is missing; expected string or null.
- /age: expected at most 9 (rule maximum), got number.
Send the whole corrected JSON object again, not only the changed parts, and nothing else.`, model.Feedback("M", violations))
	wire, err := json.Marshal(violations[2])
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"/steps/0/name","rule":"type","expected":"string or null","got_type":"number"}`, string(wire))
}

func TestViolationsNeverShowValuesOfTheData(t *testing.T) {
	t.Parallel()
	const secret = "S3CRET-VALUE"
	lax := compileOne(t, "M",
		define(t, "M", "a", `{"type":"int"}`, "b", `{"type":"str","pattern":"^x$","max":3}`, "c", `{"type":"literal","values":["q"]}`,
			"d", `{"type":"union","variants":["N","int"]}`, "e", `{"type":"dict[str, int]"}`, "needed", `{"type":"str"}`),
		define(t, "N", "z", `{"type":"bool"}`))
	full := schema(t, `{"properties":{"a":{"not":{"type":"string"}},"b":{"if":{"type":"string"},"then":{"maxLength":1}},"e":{"propertyNames":{"maxLength":3}}},
		"patternProperties":{"^c":{"const":1}},"unevaluatedProperties":false}`)
	long := strings.Repeat(secret, 10)
	data := `{"a":"` + secret + `","b":"` + secret + `","c":"` + secret + `","d":{"z":"` + secret + `"},"e":{"` + long + `":"` + secret + `","\u0007` + secret + `":"x"},"` + long + `":1}`
	for _, m := range []*model.Model{lax, full} {
		_, violations := m.Check(tree(t, data))
		require.NotEmpty(t, violations)
		wire, err := json.Marshal(violations)
		require.NoError(t, err)
		require.NotContains(t, string(wire), secret)
		require.NotContains(t, model.Feedback("M", violations), secret)
	}
}

func TestAtMostTwentyViolationsAreReported(t *testing.T) {
	t.Parallel()
	m := schema(t, `{"properties":{"a":{"items":{"type":"integer"}}}}`)
	_, violations := m.Check(tree(t, `{"a":[`+strings.Repeat(`"x",`, 1000)+`1]}`))
	require.Len(t, violations, model.MaxViolations)
	require.Contains(t, model.Feedback("M", violations), "there may be more")
}

func TestReasonNamesTheFirstViolation(t *testing.T) {
	t.Parallel()
	for want, violations := range map[string][]model.Violation{
		"":                                 nil,
		"bad_int:a/b":                      {{Path: "/a/b", Rule: model.RuleType, Expected: "integer", GotType: "string"}, {Path: "/z"}},
		"bad_bool:0":                       {{Path: "/0", Rule: model.RuleType, Expected: "boolean", GotType: "null"}},
		"bad_str:k":                        {{Path: "/k", Rule: model.RuleType, Expected: "string", GotType: "number"}},
		"k: is missing; expected integer.": {{Path: "/k", Rule: model.RuleRequired, Expected: "integer", GotType: "absent"}},
		"k: expected integer or null, got array.": {{Path: "/k", Rule: model.RuleType, Expected: "integer or null", GotType: "array"}},
		"expected string, got array.":             {{Rule: model.RuleType, Expected: "string", GotType: "array"}},
	} {
		require.Equal(t, want, model.Reason(violations))
	}
}
