// Package repaircases has the acceptance cases of JSON from agents: texts that models write, and the object, the repairs or the
// error that each has to give. testdata/agent-messages/json_repair.jsonl holds them.
package repaircases

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

// Count is how many cases there are.
const Count = 240

// Case is one text.
type Case struct {
	Name         string
	Content      json.RawMessage // of the message: a JSON string, or an object or list
	Schema       json.RawMessage // of the model, nil for any object
	FinishReason string
	expect       expectation
}

type expectation struct {
	Value     json.RawMessage `json:"value"`
	ValueText string          `json:"value_text"`
	Repairs   []string        `json:"repairs"`
	Around    []string        `json:"around"`
	Warnings  []string        `json:"warnings"`
	Error     []string        `json:"error"`
}

// Outcome is what a reader returned for a case.
type Outcome struct {
	Value                     json.RawMessage // nil for an error
	Repairs, Around, Warnings []string
	Code, Feedback            string // of an error
}

// Read returns all cases. File is their file, from the folder of the test.
func Read(t *testing.T, file string) []Case {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var all []Case
	for lines.Scan() {
		var c struct {
			Name   string          `json:"name"`
			Text   json.RawMessage `json:"text"`
			Schema json.RawMessage `json:"model_schema"`
			Finish string          `json:"finish_reason"`
			Expect expectation     `json:"expect"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		one := Case{Name: c.Name, Content: c.Text, Schema: c.Schema, FinishReason: c.Finish, expect: c.Expect}
		if value := decode(t, c.Text); isShort(value) {
			text, isText := expand(t, value).(string)
			require.True(t, isText, c.Name)
			one.Content = json.RawMessage(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`) // also of bytes that are not UTF-8
		}
		all = append(all, one)
	}
	require.NoError(t, lines.Err())
	require.Len(t, all, Count)
	return all
}

// isShort reports whether a text is written in one of the forms for large and odd values.
func isShort(v any) bool {
	object, ok := v.(map[string]any)
	return ok && (object["$repeat"] != nil || object["$concat"] != nil || object["$bytes"] != nil)
}

// expand resolves these forms.
func expand(t *testing.T, v any) any {
	t.Helper()
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

// Check compares an outcome with what the case expects. That there is an error is binding, and so are its possible codes.
func (c *Case) Check(t *testing.T, got *Outcome) {
	t.Helper()
	if c.expect.Error != nil {
		require.Empty(t, got.Value)
		require.Contains(t, c.expect.Error, got.Code)
		require.NotEmpty(t, got.Feedback)
		return
	}
	require.Empty(t, got.Code)
	require.Equal(t, plain(t, expand(t, decode(t, c.expect.Value))), plain(t, decode(t, got.Value)))
	if c.expect.ValueText != "" {
		require.Equal(t, c.expect.ValueText, string(got.Value))
	}
	require.Equal(t, sorted(c.expect.Repairs), sorted(got.Repairs))
	require.Equal(t, sorted(c.expect.Around), sorted(got.Around))
	require.Equal(t, sorted(c.expect.Warnings), sorted(got.Warnings))
}

func decode(t *testing.T, data []byte) any {
	t.Helper()
	v, err := events.Decode(data)
	require.NoError(t, err)
	return v
}

// plain is JSON with numbers by their value.
func plain(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var loose any
	require.NoError(t, json.Unmarshal(data, &loose))
	data, err = json.Marshal(loose)
	require.NoError(t, err)
	return string(data)
}

func sorted(names []string) []string {
	return slices.Sorted(slices.Values(names))
}

// Texts returns names as texts.
func Texts[T ~string](names []T) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = string(name)
	}
	return all
}
