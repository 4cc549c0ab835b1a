package expression_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/handoff/expression"
)

// exprCase is a condition that AG2's ContextExpression has evaluated, too: its result is the key ag2 of the file.
// Where the expected result differs from it, disputed is set.
type exprCase struct {
	Name       string          `json:"name"`
	Expression long            `json:"expression"`
	Context    map[string]long `json:"context"`
	Expect     struct {
		Value bool            `json:"value"`
		Error expression.Code `json:"error"`
		At    string          `json:"at"`
	} `json:"expect"`
}

func TestExpressionsHaveTheResultsOfTheCases(t *testing.T) {
	t.Parallel()
	all := readCases(t)
	require.Len(t, all, 234)
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			variables := make(map[string]any, len(c.Context))
			for name, v := range c.Context {
				variables[name] = v.value
			}
			text, _ := c.Expression.value.(string)
			got, at, err := evaluate(text, variables)
			if c.Expect.Error != "" {
				var known *expression.Error
				require.ErrorAs(t, err, &known)
				require.Equal(t, c.Expect.At, at)
				require.Equal(t, c.Expect.Error, known.Code, known.Error())
				require.Equal(t, at == "load", known.AtLoad())
				require.NotEmpty(t, known.Fix)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.Expect.Value, got)
		})
	}
}

func evaluate(text string, variables map[string]any) (holds bool, at string, err error) {
	e, err := expression.Parse(text)
	if err != nil {
		return false, "load", err
	}
	holds, err = e.Eval(variables)
	return holds, "evaluate", err
}

func readCases(t *testing.T) []exprCase {
	t.Helper()
	data, err := os.ReadFile("../../testdata/agent-messages/handoff_expressions.jsonl")
	require.NoError(t, err)
	var all []exprCase
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var c exprCase
		err := d.Decode(&c)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, c)
	}
}

// long is a value in which {"$repeat": [text, n]} and {"$concat": [parts]} stand for long texts.
type long struct{ value any }

// UnmarshalJSON implements json.Unmarshaler.
func (l *long) UnmarshalJSON(data []byte) error {
	var special struct {
		Repeat []json.RawMessage `json:"$repeat"`
		Concat []long            `json:"$concat"`
	}
	if bytes.Contains(data, []byte(`"$`)) && json.Unmarshal(data, &special) == nil {
		var text string
		var n int
		parts := make([]string, len(special.Concat))
		for i, part := range special.Concat {
			parts[i], _ = part.value.(string)
		}
		text = strings.Join(parts, "")
		if len(special.Repeat) == 2 && json.Unmarshal(special.Repeat[0], &text) == nil && json.Unmarshal(special.Repeat[1], &n) == nil {
			text = strings.Repeat(text, n)
		}
		l.value = text
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(&l.value)
}
