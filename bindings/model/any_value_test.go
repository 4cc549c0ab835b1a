package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

func ExampleCompileValue() {
	vote, err := model.CompileValue("vote", json.RawMessage(`{"type": "string", "enum": ["yes", "no"]}`))
	if err != nil {
		panic(err)
	}
	out, _, violations := vote.Conform("yes")
	fmt.Println(out, violations)
	_, _, violations = vote.Conform(json.Number("1"))
	fmt.Println(violations[0].Rule, violations[0].GotType)
	// Output:
	// yes []
	// type number
}

func TestValueOfAnyTypeIsHeldAgainstItsSchema(t *testing.T) {
	t.Parallel()
	for schema, cases := range map[string]map[string]bool{
		`{"type":"boolean"}`:                       {`true`: true, `"perhaps"`: false, `null`: false, `{}`: false},
		`{"type":"integer","minimum":1}`:           {`1`: true, `0`: false, `"a"`: false},
		`{"type":["string","null"],"maxLength":3}`: {`"abc"`: true, `null`: true, `"abcd"`: false},
		`{"type":"array","items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"number"}}}`: {`[1,2.5]`: true, `["x"]`: false, `[]`: true},
		`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`:       {`{"a":"x"}`: true, `{}`: false, `[]`: false},
		`{"not":{"type":"string"}}`: {`1`: true, `"x"`: false},
		`{}`:                        {`1`: true, `"x"`: true, `null`: true, `{"a":[]}`: true},
	} {
		v, err := model.CompileValue("answer", json.RawMessage(schema))
		require.NoError(t, err, schema)
		for text, fits := range cases {
			tree, err := events.Decode([]byte(text))
			require.NoError(t, err)
			_, _, violations := v.Conform(tree)
			require.Equal(t, fits, len(violations) == 0, "%s against %s: %v", text, schema, violations)
		}
	}
}

func TestValueIsCompletedAndCoerced(t *testing.T) {
	t.Parallel()
	v, err := model.CompileValue("answer", json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"note":{"type":"string","default":""}}}`))
	require.NoError(t, err)
	out, changed, violations := v.Conform(map[string]any{"n": "5"})
	require.Empty(t, violations)
	require.True(t, changed)
	require.Equal(t, map[string]any{"n": json.Number("5"), "note": ""}, out)
}

func TestSchemaOfAValueThatCannotBeUsedIsRefused(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"no JSON": `{`, "no object": `[]`, "no value": `{"type":[]}`, "outside": `{"$ref":"https://example.com/x"}`,
		"large": `{"description":"` + strings.Repeat("x", 300<<10) + `"}`, "type": `{"type":"strin"}`,
	} {
		_, err := model.CompileValue("answer", json.RawMessage(schema))
		require.Error(t, err, name)
	}
}
