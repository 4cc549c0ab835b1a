package model_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/diag"
)

func TestOneBadFieldMakesOnlyItsModelAndItsUsersUnusable(t *testing.T) {
	t.Parallel()
	models, problems := model.CompileMozaiks([]model.Definition{
		define(t, "Good", "a", `{"type":"str"}`),
		define(t, "User", "x", `{"type":"list","items":"Bad"}`),
		define(t, "Bad", "a", `{"type":"strng"}`, "b", `{"type":"int"}`, "c", `{"type":"literal","values":[]}`),
		define(t, "Far", "u", `{"type":"optional_list","items":"User"}`, "g", `{"type":"Good"}`),
		define(t, "Ring", "r", `{"type":"union","variants":["Ring2","null"]}`),
		define(t, "Ring2", "r", `{"type":"list","items":"Ring"}`),
	})
	require.Equal(t, []string{"Good", "Ring", "Ring2"}, slices.Sorted(maps.Keys(models)))
	got := make([]string, len(problems))
	for i, p := range problems {
		require.Equal(t, diag.SeverityError, p.Severity)
		require.NotEmpty(t, p.Fix)
		got[i] = p.Model + "." + p.Field + ": " + p.Message
	}
	require.Equal(t, []string{
		`Bad.a: unknown type "strng", did you mean "string"?`,
		"Bad.c: a literal needs `values`, a list that is not empty",
		`User.x: needs the model "Bad", which is unusable`,
		`Far.u: needs the model "User", which is unusable`,
	}, got)
}

func TestOdditiesAreWarnings(t *testing.T) {
	t.Parallel()
	for spec, message := range map[string]string{
		`{"type":"STR"}`:                               `the type "STR" is read as "str"; MozaiksAI does not know it`,
		`{"type":"str","optional":true}`:               "`optional` is ignored and the field stays required, as in MozaiksAI",
		`{"type":"str","required":["a"]}`:              "`required` is not true or false and is ignored",
		`{"type":"str","pattern":"(?=a)"}`:             "`pattern` cannot be used here and is ignored",
		`{"type":"int","minLength":1}`:                 "`minLength` cannot be used here and is ignored",
		`{"type":"str","enum":"a"}`:                    "`enum` is not a list of values and is ignored",
		`{"type":"int","min":"low"}`:                   "`min` cannot be used here and is ignored",
		`{"type":"str","max":-1}`:                      "`max` cannot be used here and is ignored",
		`{"type":"str","default":"1","required":true}`: "`required: true` with a default: the default makes the field optional",
	} {
		models, problems := model.CompileMozaiks([]model.Definition{define(t, "M", "f", spec)})
		require.Contains(t, models, "M", spec)
		require.Len(t, problems, 1, spec)
		require.Equal(t, model.Problem{Model: "M", Finding: diag.Finding{Field: "f", Severity: diag.SeverityWarning, Message: message, Fix: problems[0].Fix}}, problems[0])
	}
}

func TestInvalidFieldsAreErrorsWithAFix(t *testing.T) {
	t.Parallel()
	bomb := `"x"`
	for range 25 {
		bomb = `{"type":"union","variants":[` + bomb + `,` + `"list","union"],"items":` + bomb + `}`
		if len(bomb) > 100_000 {
			break
		}
	}
	for _, spec := range []string{
		`{}`, `{"type":5}`, `{"type":""}`, `{"type":"union"}`, `{"type":"union","variants":[]}`, `{"type":"union","variants":["union"]}`,
		`{"type":"union","variants":[5]}`, `{"type":"list","items":5}`, `{"type":"list[nope]"}`, `{"type":"dict[int, str]"}`,
		`{"type":"literal","values":[[1]]}`, `{"type":"model","fields":["x"]}`, `{"type":"model","fields":{"x":5}}`,
		`{"type":"` + strings.Repeat("list[", 60) + "str" + strings.Repeat("]", 60) + `"}`,
		`{"type":"` + strings.Repeat("a", 2000) + `"}`, `{"type":"Optional[]"}`, `{"type":"list["}`, `{"type":"|"}`, bomb,
	} {
		models, problems := model.CompileMozaiks([]model.Definition{define(t, "M", "f", spec), define(t, "Good")})
		require.NotContains(t, models, "M", spec[:min(len(spec), 80)])
		require.Contains(t, models, "Good")
		require.NotEmpty(t, problems)
		require.LessOrEqual(t, len(problems), 1000)
		for _, p := range problems {
			require.NotEmpty(t, p.Fix)
			require.Less(t, len(p.Message), 300)
		}
	}
}

func TestTypeNamesOfMozaiksWinOverModelsAndModelsOverOurNames(t *testing.T) {
	t.Parallel()
	m := compileOne(t, "M",
		define(t, "M", "a", `{"type":"str"}`, "b", `{"type":"object"}`),
		define(t, "str", "q", `{"type":"int"}`), define(t, "object", "n", `{"type":"int"}`))
	out, violations := m.Check(tree(t, `{"a":"x","b":{"n":"1","m":2}}`))
	require.Empty(t, violations)
	require.JSONEq(t, `{"a":"x","b":{"n":1}}`, text(t, out))
}

func TestDefaultsAreCopiedForEveryOutput(t *testing.T) {
	t.Parallel()
	m := compileOne(t, "M", define(t, "M", "l", `{"type":"list","items":"str","default":[{"a":[]}]}`, "model_config", `{"type":"str","default":7}`))
	first, _ := m.Check(map[string]any{})
	list, ok := first["l"].([]any)
	require.True(t, ok)
	list[0] = "changed"
	second, violations := m.Check(map[string]any{})
	require.Empty(t, violations)
	require.JSONEq(t, `{"l":[{"a":[]}],"model_config":7}`, text(t, second))
}

func TestModelsDefinedTwiceCountOnce(t *testing.T) {
	t.Parallel()
	models, problems := model.CompileMozaiks([]model.Definition{
		define(t, "M", "a", `{"type":"str"}`), define(t, "M", "b", `{"type":"str"}`),
		{Name: ""},
		define(t, "Two", "a", `{"type":"str"}`, "a", `{"type":"int"}`),
	})
	require.Equal(t, []string{"a"}, models["M"].Fields())
	require.NotContains(t, models, "Two")
	require.Len(t, problems, 3)
}

func TestUnionsOfObjectsReportTheOneThatWasMeant(t *testing.T) {
	t.Parallel()
	m := compileOne(t, "M",
		define(t, "M", "u", `{"type":"union","variants":["A","B","null"]}`),
		define(t, "A", "x", `{"type":"int"}`, "y", `{"type":"int"}`), define(t, "B", "z", `{"type":"int"}`))
	require.Equal(t, "type@/u/y", result(t, m, `{"u":{"x":1,"y":"q"}}`))
	require.Equal(t, "anyOf@/u", result(t, m, `{"u":{"k":1}}`))
	_, violations := m.Check(tree(t, `{"u":5}`))
	require.Equal(t, []model.Violation{{Path: "/u", Rule: "type", Expected: "A object or B object or null", GotType: "number"}}, violations)
}

func TestClosedSetsThatMayBeNullNameNull(t *testing.T) {
	t.Parallel()
	m := compileOne(t, "M", define(t, "M",
		"scope", `{"type":"union","variants":["literal","null"],"values":["pre"]}`, "text", `{"type":"union","variants":["literal","int"],"values":["pre"]}`))
	for data, want := range map[string]string{
		`{"scope":"post","text":1}`:    `"pre" or null`,
		`{"text":1}`:                   `"pre" or null`,
		`{"scope":null,"text":"post"}`: `"pre"`,
	} {
		_, violations := m.Check(tree(t, data))
		require.Len(t, violations, 1, data)
		require.Equal(t, want, violations[0].Expected, data)
	}
}
