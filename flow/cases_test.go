package flow_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// programCase is a case of internal/test/programcases as far as a compiler is concerned.
type programCase struct {
	Name  string `json:"name"`
	Tools map[string]struct {
		Input  json.RawMessage `json:"input_schema"`
		Output json.RawMessage `json:"output_schema"`
		Effect events.Effect   `json:"effect"`
	} `json:"tools"`
	Config struct {
		MaxSteps    int      `json:"max_steps"`
		MaxParallel int      `json:"max_parallel"`
		MaxDepth    int      `json:"max_depth"`
		Uses        []string `json:"uses"`
		Enabled     *bool    `json:"enabled"`
	} `json:"config"`
	Plan        json.RawMessage `json:"plan"`
	PlanText    string          `json:"plan_text"`
	Orchestrate json.RawMessage `json:"orchestrate"`
	Expect      struct {
		Status   string            `json:"status"`
		Errors   []json.RawMessage `json:"errors"`
		Feedback []string          `json:"feedback_contains"`
		Check    struct {
			Steps []struct {
				Call  string   `json:"call"`
				Needs []string `json:"needs"`
			} `json:"steps"`
		} `json:"check"`
	} `json:"expect"`
}

func (c *programCase) options(t *testing.T) flow.Options {
	t.Helper()
	var tools flow.ToolList
	for name, described := range c.Tools {
		if c.Config.Uses != nil && !slices.Contains(c.Config.Uses, name) {
			continue
		}
		tool := flow.Tool{Name: name, Effect: described.Effect}
		switch name {
		case "run_plan":
			tool.Program = flow.KindPlan
		case "cp__agent_orchestrate":
			tool.Program = flow.KindOrchestration
		}
		var err error
		if described.Input != nil {
			tool.Input, err = model.CompileSchema(name, described.Input)
			require.NoError(t, err)
			tool.Arguments, err = flow.NewSchema(described.Input)
			require.NoError(t, err)
		}
		if described.Output != nil {
			tool.Output, err = flow.NewSchema(described.Output)
			require.NoError(t, err)
		}
		tools = append(tools, tool)
	}
	slices.SortFunc(tools, func(a, b flow.Tool) int { return len(a.Name) - len(b.Name) })
	return flow.Options{Tools: tools, Limits: flow.Limits{Steps: c.Config.MaxSteps, Parallel: c.Config.MaxParallel, Depth: c.Config.MaxDepth}}
}

func (c *programCase) compile(t *testing.T) (*flow.Program, error) {
	t.Helper()
	o := c.options(t)
	if c.Orchestrate == nil {
		text := c.PlanText
		if text == "" {
			text = string(c.Plan)
		}
		data, err := events.Decode([]byte(text))
		require.NoError(t, err)
		return flow.CompilePlan(data, o)
	}
	data, err := events.Decode(c.Orchestrate)
	require.NoError(t, err)
	r, err := flow.ReadRequest(data, o)
	if err != nil || r.Plan == nil {
		return nil, err
	}
	return flow.CompileOrchestration(r.Plan, r, o)
}

// TestCasesAreRefusedForTheExpectedReasons compiles every case that needs no model to plan it.
func TestCasesAreRefusedForTheExpectedReasons(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../internal/test/programcases/testdata/*/*.json")
	require.NoError(t, err)
	require.Len(t, files, 143)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var c programCase
		require.NoError(t, json.Unmarshal(data, &c))
		if c.Plan == nil && c.PlanText == "" && c.Orchestrate == nil || c.Config.Enabled != nil || strings.Contains(string(c.Orchestrate), `"prompt":`) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			program, err := c.compile(t)
			if c.Expect.Status == "invalid" && len(c.Expect.Errors) == 0 {
				require.Equal(t, events.CodeValidationFailed, events.CodeOf(err))
				return
			}
			if c.Expect.Status != "invalid" {
				var refused *flow.Refused
				if errors.As(err, &refused) {
					require.NoError(t, err, refused.Feedback())
				}
				for i, step := range c.Expect.Check.Steps {
					require.Equal(t, step.Needs, program.Calls()[i].Needs)
				}
				return
			}
			var refused *flow.Refused
			require.ErrorAs(t, err, &refused)
			require.Equal(t, events.CodeValidationFailed, events.CodeOf(err))
			require.Len(t, refused.Problems, len(c.Expect.Errors), refused.Feedback())
			left := slices.Clone(refused.Problems)
			for _, expected := range c.Expect.Errors {
				i := slices.IndexFunc(left, func(p flow.Problem) bool { return matches(t, expected, p) })
				require.GreaterOrEqual(t, i, 0, "expected %s\ngot %s", expected, refused.Feedback())
				left = slices.Delete(left, i, i+1)
			}
			for _, text := range c.Expect.Feedback {
				require.Contains(t, refused.Feedback(), text)
			}
		})
	}
}

// matches reports whether a problem has every key of the expected one with the same value.
func matches(t *testing.T, expected json.RawMessage, p flow.Problem) bool {
	t.Helper()
	encoded, err := json.Marshal(p)
	require.NoError(t, err)
	var want, got any
	require.NoError(t, json.Unmarshal(expected, &want))
	require.NoError(t, json.Unmarshal(encoded, &got))
	return contains(got, want)
}

func contains(got, want any) bool {
	object, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(got, want)
	}
	m, ok := got.(map[string]any)
	for key, value := range object {
		if !ok || !contains(m[key], value) {
			return false
		}
	}
	return ok
}
