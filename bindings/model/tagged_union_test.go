package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

const mailOrCall = `{"type":"object","required":["action"],"properties":{"action":{
	"oneOf":[{"$ref":"#/$defs/Mail"},{"$ref":"#/$defs/Call"}],
	"discriminator":{"propertyName":"kind","mapping":{"mail":"#/$defs/Mail","call":"#/$defs/Call"}}}},
	"$defs":{"Mail":{"type":"object","required":["kind","to"],"properties":{"kind":{"const":"mail"},"to":{"type":"string"}}},
	"Call":{"type":"object","required":["kind","number"],"properties":{"kind":{"const":"call"},"number":{"type":"string"}}}}}`

func TestFeedbackForAUnionNamesTheVariantItsViolationAndAllKinds(t *testing.T) {
	t.Parallel()
	const (
		nullable = `{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"anyOf":[
			{"type":"object","required":["op","x"],"properties":{"op":{"enum":["add","sub"]},"x":{"type":"integer"}}},
			{"allOf":[{"type":"object","required":["op"],"properties":{"op":{"const":"neg"}}},{"required":["y"],"properties":{"y":{"type":"integer"}}}]}]}]}}}`
		untagged = `{"type":"object","properties":{"a":{"anyOf":[{"type":"object","required":["to","text"],"properties":{"to":{},"text":{}}},{"type":"object","required":["number"],"properties":{"number":{}}}]}}}`
		inList   = `{"type":"object","properties":{"all":{"type":"array","items":{"oneOf":[{"type":"object","required":["t","a"],"properties":{"t":{"const":1},"a":{}}},{"type":"object","required":["t"],"properties":{"t":{"const":2}}}]}}}}`
	)
	for _, c := range []struct{ schema, data, want string }{
		{mailOrCall, `{"action":{"kind":"mail"}}`, `/action/to: is missing; expected string (for kind "mail").`},
		{mailOrCall, `{"action":{"kind":"call","number":5}}`, `/action/number: expected string (for kind "call"), got number.`},
		{mailOrCall, `{"action":{"kind":"fax","to":"x"}}`, `/action/kind: expected one of "mail", "call", got another value (string).`},
		{mailOrCall, `{"action":{"kind":"mial","to":"x"}}`, `/action/kind: expected one of "mail", "call", got another value (string). Did you mean "mail"?`},
		{mailOrCall, `{"action":{"to":"x"}}`, `/action/kind: is missing; expected one of "mail", "call".`},
		{mailOrCall, `{"action":{}}`, `/action/kind: is missing; expected one of "mail", "call".`},
		{mailOrCall, `{}`, `/action: is missing; expected object with kind "mail", to or object with kind "call", number.`},
		{mailOrCall, `{"action":"mail"}`, `/action: expected object, got string.`},
		{nullable, `{"a":{"op":"sub"}}`, `/a/x: is missing; expected integer (for op "sub").`},
		{nullable, `{"a":{"op":"neg"}}`, `/a/y: is missing; expected integer (for op "neg").`},
		{nullable, `{"a":{"op":"mul"}}`, `/a/op: expected one of "add", "sub", "neg", got another value (string).`},
		{untagged, `{"a":{}}`, `/a: expected object with text, to or object with number (rule anyOf), got object.`},
		{untagged, `{"a":{"to":1}}`, `/a/text: is missing; expected any value.`},
		{inList, `{"all":[{"t":2},{"t":1}]}`, `/all/1/a: is missing; expected any value (for t 1).`},
		{inList, `{"all":[{"t":3}]}`, `/all/0/t: expected one of 1, 2, got another value (number).`},
	} {
		m, err := model.CompileSchema("M", json.RawMessage(c.schema))
		require.NoError(t, err)
		data, err := events.Decode([]byte(c.data))
		require.NoError(t, err)
		_, violations := m.Check(data)
		require.Len(t, violations, 1, c.data)
		require.Equal(t, c.want, violations[0].String(), c.data)
		require.Contains(t, model.Feedback("M", violations), c.want)
	}
}

func TestFeedbackForAUnionOfModelsNamesTheVariant(t *testing.T) {
	t.Parallel()
	models, problems := model.CompileMozaiks([]model.Definition{
		define(t, "Mail", "kind", `{"type":"literal","values":["mail"]}`, "to", `{"type":"str"}`),
		define(t, "Call", "kind", `{"type":"literal","values":["call"]}`, "number", `{"type":"str"}`),
		define(t, "M", "action", `{"type":"union","variants":["Mail","Call","null"]}`, "scope", `{"type":"union","variants":["literal","null"],"values":["pre"]}`),
	})
	require.Empty(t, problems)
	for data, want := range map[string]string{
		`{"scope":null,"action":{"kind":"mail"}}`: `/action/to: is missing; expected string (for kind "mail").`,
		`{"scope":null,"action":{"kind":"fax"}}`:  `/action/kind: expected one of "mail", "call", got another value (string).`,
		`{"scope":"pre"}`:                         `/action: is missing; expected Mail object with kind "mail", to or Call object with kind "call", number or null.`,
		`{"action":null}`:                         `/scope: is missing; expected "pre" or null.`,
	} {
		tree, err := events.Decode([]byte(data))
		require.NoError(t, err)
		_, violations := models["M"].Check(tree)
		require.Len(t, violations, 1, data)
		require.Equal(t, want, violations[0].String(), data)
	}
}
