package events_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func TestAppendJSONIsCanonical(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{ "b" : 1.0, "a": [ true , null, -0, 1E5 ], "B":{} }`: `{"B":{},"a":[true,null,-0,1E5],"b":1.0}`,
		`"\u003c<>&\/\u2028é"`:                                 "\"<<>&/\u2028é\"",
		`"\u0000\u001f\u007f\"\\\n\r\t\b\f"`:                   "\"\\u0000\\u001f\u007f\\\"\\\\\\n\\r\\t\\b\\f\"",
		`{"é":1,"z":2,"":3}`:                                   `{"":3,"z":2,"é":1}`,
	} {
		require.Equal(t, want, mustAppend(t, mustDecode(t, doc)), doc)
		require.Equal(t, want, mustAppend(t, json.RawMessage(doc)), "raw %s", doc)
		require.Equal(t, mustDecode(t, doc), mustDecode(t, want), doc)
	}
	require.Equal(t, "null", mustAppend(t, json.RawMessage(nil)))
	got, err := events.AppendJSON([]byte("x"), []any{"y"})
	require.NoError(t, err)
	require.Equal(t, `x["y"]`, string(got))
}

func TestAppendJSONRefusesWhatDecodeWouldRefuse(t *testing.T) {
	t.Parallel()
	loop := map[string]any{}
	loop["self"] = loop
	for name, c := range map[string]struct {
		value any
		want  error
	}{
		"float64":           {1.5, events.ErrBadArgs},
		"int in array":      {[]any{1}, events.ErrBadArgs},
		"struct":            {struct{}{}, events.ErrBadArgs},
		"string map":        {map[string]string{}, events.ErrBadArgs},
		"empty number":      {number(""), events.ErrBadArgs},
		"NaN":               {number("NaN"), events.ErrBadArgs},
		"number and more":   {number("1,2"), events.ErrBadArgs},
		"leading zero":      {number("01"), events.ErrBadArgs},
		"huge exponent":     {number("1e999"), events.ErrBadArgs},
		"invalid UTF-8":     {"a\xff", events.ErrBadArgs},
		"invalid key":       {map[string]any{"\xff": nil}, events.ErrBadArgs},
		"broken raw":        {json.RawMessage(`{"a":`), events.ErrBadArgs},
		"duplicates in raw": {json.RawMessage(`{"a":1,"a":2}`), events.ErrBadArgs},
		"too deep":          {nested(events.MaxDepth + 1), events.ErrTooLarge},
		"raw too deep":      {[]any{json.RawMessage(nest(events.MaxDepth))}, events.ErrTooLarge},
		"loop":              {loop, events.ErrTooLarge},
	} {
		_, err := events.AppendJSON(nil, c.value)
		require.ErrorIs(t, err, c.want, name)
	}
	require.NotEmpty(t, mustAppend(t, nested(events.MaxDepth)))
}

func TestExtentCountsLevelsAndValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{`1`: {0, 1}, `{}`: {1, 1}, `{"a":[1,2],"b":{"c":[]}}`: {3, 6}} {
		v, err := events.Decode([]byte(text))
		require.NoError(t, err)
		depth, nodes := events.Extent(v)
		require.Equal(t, want, [2]int{depth, nodes}, text)
	}
}
