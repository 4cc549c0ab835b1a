package handoff_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
)

// ruleCase is a manifest that MozaiksAI's wiring and AG2's selection have decided, too: their result is the key mozaiks
// of the file. Where the expected result differs from it, disputed is set.
type ruleCase struct {
	Name     string          `json:"name"`
	Manifest json.RawMessage `json:"manifest"`
	Agents   []string        `json:"agents"`
	Context  json.RawMessage `json:"context"`
	Message  struct {
		Agent   string `json:"agent"`
		Content string `json:"content"`
	} `json:"message"`
	Decider     map[string]any   `json:"decider"`
	Expect      handoff.Decision `json:"expect"`
	Diagnostics []string         `json:"diagnostics"`
}

func TestHandoffsHaveTheResultsOfTheCases(t *testing.T) {
	t.Parallel()
	all := readCases(t)
	require.Len(t, all, 77)
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			decoded, err := events.Decode(c.Context)
			require.NoError(t, err)
			variables, _ := decoded.(map[string]any)
			opts := handoff.Options{Agents: c.Agents, Variables: slices.Collect(maps.Keys(variables))}
			if c.Decider != nil {
				opts.Decider = "decider"
			}
			rules, found := handoff.Compile(opts, handoff.Manifest{JSON: c.Manifest})
			var codes []string
			for _, f := range found {
				require.NotEmpty(t, f.Fix, f.Message)
				codes = append(codes, f.Code)
			}
			require.Subset(t, codes, c.Diagnostics)
			in := handoff.Input{Agent: c.Message.Agent, Content: c.Message.Content, Last: c.Agents[0], Variables: variables, Answers: map[string]handoff.Answer{}}
			got, asked := rules.Decide(in)
			for ; asked != nil; got, asked = rules.Decide(in) {
				require.NotContains(t, in.Answers, asked.Call())
				in.Answers[asked.Call()] = answerOf(c.Decider[strconv.Itoa(asked.Rule)])
			}
			got.Message = ""
			require.Equal(t, c.Expect, got)
		})
	}
}

func answerOf(value any) handoff.Answer {
	switch value {
	case true:
		return handoff.AnswerYes
	case false:
		return handoff.AnswerNo
	}
	return handoff.AnswerFailed
}

func readCases(t *testing.T) []ruleCase {
	t.Helper()
	data, err := os.ReadFile("../testdata/agent-messages/handoff_rules.jsonl")
	require.NoError(t, err)
	var all []ruleCase
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var c ruleCase
		err := d.Decode(&c)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, c)
	}
}
