package agentjson_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/events"
)

// The acceptance cases: testdata/agent-messages/json_repair.jsonl has 240 model outputs and what they mean.

type repairCase struct {
	Name   string          `json:"name"`
	Text   json.RawMessage `json:"text"`
	Model  *model          `json:"model_schema"`
	Finish string          `json:"finish_reason"`
	Expect struct {
		Value     json.RawMessage         `json:"value"`
		ValueText string                  `json:"value_text"`
		Repairs   []agentjson.Repair      `json:"repairs"`
		Around    []agentjson.Surrounding `json:"around"`
		Warnings  []agentjson.Warning     `json:"warnings"`
		Error     []agentjson.Code        `json:"error"`
	} `json:"expect"`
}

// model is the schema of a case: required names, and types.
type model struct {
	Required   []string `json:"required"`
	Properties map[string]struct {
		Type string `json:"type"`
	} `json:"properties"`
}

func (m *model) fits(object map[string]any) bool {
	for _, name := range m.Required {
		if _, ok := object[name]; !ok {
			return false
		}
	}
	for name, p := range m.Properties {
		if v, ok := object[name]; ok && p.Type != "" && p.Type != typeOf(v) {
			return false
		}
	}
	return true
}

func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "integer"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	default:
		return "null"
	}
}

// expand resolves the short forms for large and odd values.
func expand(t require.TestingT, v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = expand(t, v[i])
		}
	case map[string]any:
		if of, ok := v["$repeat"].([]any); ok {
			text, isText := of[0].(string)
			times, isNumber := of[1].(json.Number)
			require.True(t, isText && isNumber, of)
			n, err := times.Int64()
			require.NoError(t, err)
			return strings.Repeat(text, int(n))
		}
		if parts, ok := v["$concat"].([]any); ok {
			var b strings.Builder
			for _, part := range parts {
				text, isText := expand(t, part).(string)
				require.True(t, isText, part)
				b.WriteString(text)
			}
			return b.String()
		}
		if digits, ok := v["$bytes"].(string); ok {
			data, err := hex.DecodeString(digits)
			require.NoError(t, err)
			return string(data)
		}
		for name := range v {
			v[name] = expand(t, v[name])
		}
	}
	return v
}

func TestModelOutputsHaveTheResultsOfTheCases(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../testdata/agent-messages/json_repair.jsonl")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var c repairCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
	require.NoError(t, lines.Err())
	require.Equal(t, 240, n)
}

func (c *repairCase) check(t *testing.T) {
	t.Helper()
	o := agentjson.Options{FinishReason: c.Finish}
	if c.Model != nil {
		o.Fits = c.Model.fits
	}
	raw, err := events.Decode(c.Text)
	require.NoError(t, err)
	var found agentjson.Found
	if text, ok := expand(t, raw).(string); ok {
		found, err = agentjson.Extract(text, o)
	} else {
		found, err = agentjson.ExtractContent(c.Text, o)
	}
	if c.Expect.Error != nil {
		var e *agentjson.Error
		require.ErrorAs(t, err, &e)
		require.Contains(t, c.Expect.Error, e.Code, e.Message)
		require.NotEmpty(t, e.Feedback())
		return
	}
	require.NoError(t, err)
	want, err := events.Decode(c.Expect.Value)
	require.NoError(t, err)
	want = expand(t, want)
	require.Equal(t, canonical(t, want), canonical(t, found.Object))
	if c.Expect.ValueText != "" {
		require.Equal(t, c.Expect.ValueText, string(found.JSON))
	}
	require.Equal(t, sorted(c.Expect.Repairs), sorted(found.Repairs))
	require.Equal(t, sorted(c.Expect.Around), sorted(found.Around))
	require.Equal(t, sorted(c.Expect.Warnings), sorted(found.Warnings))
}

// canonical is JSON with numbers by their value.
func canonical(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var loose any
	require.NoError(t, json.Unmarshal(data, &loose))
	data, err = json.Marshal(loose)
	require.NoError(t, err)
	return string(data)
}

func sorted[T ~string](all []T) []string {
	out := make([]string, 0, len(all))
	for _, one := range all {
		out = append(out, string(one))
	}
	slices.Sort(out)
	return out
}
