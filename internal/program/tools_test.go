package program_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestToolsOfStepsAreFoundByTheNamesThatProgramsUse(t *testing.T) {
	t.Parallel()
	plans, orchestrations := compiler(t, "run_plan", nil).Tools, compiler(t, "cp__agent_orchestrate", nil).Tools
	require.Equal(t, []string{"inner", "note", "remote", "review", "save", "search"}, plans.Names())
	require.Equal(t, []string{"critic", "inner", "search"}, orchestrations.Names(), "agents by their ids")
	for _, tools := range []*program.Tools{plans, orchestrations} {
		tool, ok := tools.Find("agent:critic")
		require.True(t, ok)
		require.Equal(t, "review", tool.Name)
		require.Same(t, tools.Binding("agent:critic"), tools.Binding("review"))
	}
	_, ok := plans.Find("deep")
	require.False(t, ok)
	require.Len(t, plans.Bindings(), 6)
}

func TestSchemasOfStepsAreOfTheManifestElseOfTheToolElseOfItsModel(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	c := compiler(t, "run_plan", func(b *bindings.Binding) (tools.Description, bool) {
		asked[b.Tool]++
		return tools.Description{
			Input: json.RawMessage(`{"type":"object","required":["described"],"properties":{"described":{"type":"string"}}}`), Output: json.RawMessage(`{"properties":{"id":{"type":"string"}}}`), Effect: "idempotent",
		}, b.Tool == "remote"
	})
	find := func(name string) flow.Tool {
		tool, ok := c.Tools.Find(name)
		require.True(t, ok, name)
		return tool
	}
	for range 2 {
		search := find("search")
		require.Equal(t, []string{"city", "days"}, search.Input.Fields())
		require.NotNil(t, search.Arguments)
		require.NotNil(t, search.Output)
		require.Equal(t, events.EffectNone, search.Effect)

		save := find("save")
		require.Nil(t, save.Output, "no reference leads into it")
		require.Equal(t, events.EffectKeyed, save.Effect)

		note := find("note")
		require.Equal(t, []string{"text"}, note.Input.Fields(), "its model")

		remote := find("remote")
		require.Equal(t, []string{"described"}, remote.Input.Fields())
		require.NotNil(t, remote.Output)
		require.Equal(t, events.EffectIdempotent, remote.Effect)
	}
	require.Equal(t, map[string]int{"save": 1, "note": 1, "remote": 1}, asked, "only what the manifest leaves open, once")
	require.Equal(t, flow.KindPlan, find("inner").Program)
	require.Equal(t, []string{"deep", "inner"}, find("inner").Steps.Names())
}

func TestCatalogCompilesAToolOnceAndAgainWhenItReportsOtherSchemas(t *testing.T) {
	t.Parallel()
	set := load(t, manifest)
	described := tools.Description{Input: json.RawMessage(`{"type":"object","properties":{"a":{}}}`), Output: json.RawMessage(`{"type":"object"}`), Effect: "none"}
	catalog := program.NewCatalog(set, func(b *bindings.Binding) (tools.Description, bool) { return described, b.Tool == "remote" })
	require.Same(t, set, catalog.Set())
	find := func(name string) flow.Tool {
		tool, ok := catalog.Tools(set.Bound("W", "", "run_plan"), "Assistant").Find(name)
		require.True(t, ok, name)
		return tool
	}
	search, remote := find("search"), find("remote")
	require.Same(t, search.Arguments, find("search").Arguments)
	require.Same(t, search.Output, find("search").Output)
	require.Same(t, remote.Input, find("remote").Input)

	described.Effect = "idempotent"
	require.Equal(t, events.EffectIdempotent, find("remote").Effect)
	require.Same(t, remote.Input, find("remote").Input, "only its effect is another one")

	described.Input = json.RawMessage(`{"type":"object","properties":{"b":{}}}`)
	require.Equal(t, []string{"b"}, find("remote").Input.Fields())
	described.Output = nil
	require.Nil(t, find("remote").Output)
	require.Same(t, search.Output, find("search").Output)
}
