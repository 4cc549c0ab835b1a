package answers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// refusedSecret answers a secret question and returns why the answer does not fit.
func refusedSecret(t *testing.T, schema, answer string) (*InvalidError, string) {
	t.Helper()
	tree, err := events.Decode([]byte(schema))
	require.NoError(t, err)
	value, err := events.Decode([]byte(answer))
	require.NoError(t, err)
	q := &events.ToolCall{Secret: true, Answer: &events.AnswerTo{Schema: tree}}
	c, err := (&Schemas{}).Check(q, value)
	require.NoError(t, err)
	require.NotNil(t, c.Invalid, "%s fits %s", answer, schema)
	text, err := events.AppendJSON(nil, events.JSONOf(c.Invalid.Violations))
	require.NoError(t, err)
	return c.Invalid, c.Invalid.Text + string(text)
}

func TestNothingOfARefusedSecretAnswerIsShown(t *testing.T) {
	t.Parallel()
	for schema, answers := range map[string][]string{
		`{"type":"object","additionalProperties":{"type":"string"}}`:                                                        {`{"hunter2":[1]}`, `{"a":{"hunter2":1}}`, `{"hunter2":{"hunter2":["hunter2"]}}`},
		`{"type":"object","additionalProperties":{"type":"string","minLength":40}}`:                                         {`{"hunter2":"hunter2"}`, `{"hunter2":"a","hunter2x":"b"}`},
		`{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}}}`:                              {`{"hunter2":[1,"hunter2"]}`},
		`{"type":"object","propertyNames":{"maxLength":3}}`:                                                                 {`{"hunter2":1}`},
		`{"type":"object","patternProperties":{"^h":{"type":"integer"}}}`:                                                   {`{"hunter2":"hunter2"}`},
		`{"type":"object","properties":{"api_key":{"type":"string"}},"required":["api_key"]}`:                               {`{"hunter2":"x"}`, `{"hunter2":{"api_key":1}}`, `"hunter2"`},
		`{"type":"object","properties":{"api_key":{"type":"integer"}},"required":["api_key"],"additionalProperties":false}`: {`{"hunter2":"x"}`, `{"api_key":"x","hunter2":"y"}`, `{"api_kez":1,"hunter2":"hunter2"}`},
		`{"type":"object","properties":{"hunter-2":{"type":"string"},"hunter_2":{}},"required":["k"]}`:                      {`{"hunter2":"x"}`},
		`{"type":"object","unevaluatedProperties":false}`:                                                                   {`{"hunter2":1}`},
		`{"type":"object","dependentRequired":{"a":["b"]},"maxProperties":1}`:                                               {`{"a":1,"hunter2":1}`},
		`{"type":"array","items":{"type":"object","additionalProperties":{"type":"integer"}}}`:                              {`[{"hunter2":"x"}]`, `[{},{"hunter2":[]}]`},
		`{"anyOf":[{"type":"object","additionalProperties":{"type":"integer"}},{"type":"array"}]}`:                          {`{"hunter2":"x"}`, `"hunter2"`},
		`{"enum":["hunter1","other"]}`:                                                                                      {`"hunter2"`},
		`{"oneOf":[{"type":"object","properties":{"k":{"const":"hunter2"},"v":{"type":"integer"}},"required":["k","v"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]}`: {`{"k":"hunter2"}`},
		`{"not":{"type":"object","additionalProperties":{"type":"string"}}}`:                                {`{"hunter2":"x"}`},
		`{"type":"object","additionalProperties":{"type":"object","additionalProperties":{"type":"null"}}}`: {`{"7":{"31415926":"x"}}`, `{"a/b~c":{"hunter2":"x"}}`},
	} {
		for _, answer := range answers {
			_, shown := refusedSecret(t, schema, answer)
			for _, secret := range []string{"hunter2", "31415926", "api_kez", "a~1b"} {
				require.NotContains(t, shown, secret, "%s to %s", answer, schema)
			}
		}
	}
}

func TestRefusedSecretAnswerNamesThePlacesThatTheSchemaHas(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]model.Violation{
		`{}`:                          {Path: "/openai", Rule: model.RuleRequired, Expected: "a value that satisfies `required` of the schema", GotType: "absent"},
		`{"hunter2":"x"}`:             {Path: "/openai", Rule: model.RuleRequired, Expected: "a value that satisfies `required` of the schema", GotType: "absent"},
		`{"openai":"x","keys":[[1]]}`: {Path: "/keys/0", Rule: model.RuleType, Expected: "a value that satisfies `type` of the schema", GotType: "array"},
		`{"openai":"x","keys":[{},{"hunter2":[]}]}`: {Path: "/keys/1/*", Rule: model.RuleType, Expected: "a value that satisfies `type` of the schema", GotType: "array"},
	} {
		why, _ := refusedSecret(t, `{"type":"object","required":["openai"],"properties":{"openai":{"type":"string"},
			"keys":{"type":"array","items":{"type":"object","additionalProperties":{"type":"integer"}}}}}`, answer)
		require.Equal(t, []model.Violation{want}, why.Violations, answer)
		require.Equal(t, "The answer does not match the schema of the question (1 violation).", why.Text)
	}
}
