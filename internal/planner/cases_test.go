package planner_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/planner"
)

// planCase is a case of internal/test/programcases as far as its planner is concerned.
type planCase struct {
	Tools map[string]struct {
		Input  json.RawMessage `json:"input_schema"`
		Output json.RawMessage `json:"output_schema"`
	} `json:"tools"`
	Config struct {
		Planner *struct {
			Enabled bool `json:"enabled"`
		} `json:"planner"`
	} `json:"config"`
	Needs       []string `json:"needs"`
	Ask         string   `json:"ask"`
	Orchestrate struct {
		Prompt   string         `json:"prompt"`
		Bindings map[string]any `json:"bindings"`
	} `json:"orchestrate"`
	Planner struct {
		Replies []struct {
			JSON  json.RawMessage `json:"json"`
			Text  *string         `json:"text"`
			Error string          `json:"error"`
		} `json:"replies"`
	} `json:"planner"`
	Expect struct {
		Status      string         `json:"status"`
		Reason      string         `json:"reason"`
		AICalls     map[string]int `json:"ai_calls"`
		Saw         []string       `json:"planner_saw"`
		SawSecond   []string       `json:"planner_saw_second"`
		SystemLacks []string       `json:"planner_system_lacks"`
	} `json:"expect"`
}

func TestPlannerCasesOfPrograms(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../test/programcases/testdata/*/*.json")
	require.NoError(t, err)
	ran := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var c planCase
		require.NoError(t, json.Unmarshal(data, &c), file)
		if !slices.Contains(c.Needs, "planner") || c.Config.Planner != nil {
			continue
		}
		ran++
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
	require.Greater(t, ran, 8)
}

func (c *planCase) check(t *testing.T) {
	t.Helper()
	p := &planner.Planner{
		Kind: flow.KindOrchestration, Input: flow.Request{Prompt: c.Orchestrate.Prompt, Bindings: c.Orchestrate.Bindings},
		Responds: slices.Contains(c.Needs, "respond"),
	}
	if c.Ask != "" {
		p.Kind, p.Input = flow.KindPlan, flow.Request{Prompt: c.Ask}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		add(t, p, name, string(c.Tools[name].Input), string(c.Tools[name].Output))
	}
	model := &script{}
	for _, reply := range c.Planner.Replies {
		switch {
		case reply.Error != "":
			model.replies = append(model.replies, &events.Error{Code: events.CodeToolError, Msg: reply.Error})
		case reply.Text != nil:
			model.replies = append(model.replies, *reply.Text)
		default:
			model.replies = append(model.replies, reply.JSON)
		}
	}
	_, err := p.Plan(t.Context(), model.ask)
	var refused *flow.Refused
	switch {
	case c.Expect.Status == "invalid":
		require.ErrorAs(t, err, &refused)
		if c.Expect.Reason != "" {
			require.Equal(t, c.Expect.Reason, refused.Reason)
		}
	case !errors.As(err, new(*events.Error)):
		require.NoError(t, err)
	default:
		require.Equal(t, "failed", c.Expect.Status)
	}
	require.Len(t, model.seen, c.Expect.AICalls["plan"])
	saw := func(n int, texts []string) {
		for _, text := range texts {
			seen, err := json.Marshal(model.seen[n].Messages)
			require.NoError(t, err)
			require.Contains(t, string(seen), text)
		}
	}
	saw(0, c.Expect.Saw)
	saw(len(model.seen)-1, c.Expect.SawSecond)
	for _, text := range c.Expect.SystemLacks {
		require.NotContains(t, model.seen[0].System, text)
	}
}
