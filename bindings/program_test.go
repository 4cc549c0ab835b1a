package bindings_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

const programManifest = `
agents:
  Assistant:
  Clerk: {model: Order, tools: [run_plan, save]}
  Porter: {model: Order}
  Lead:
  Boss: {tools: []}
models:
  Order: {type: object, properties: {item: {type: string}}}
defaults: {effect: idempotent, timeout: 7s, max_attempts: 3}
tools:
- {name: run_plan, kind: plan, agents: [Assistant, Clerk], planner: planner, respond: writer, approve: true}
- name: cp__agent_orchestrate
  kind: orchestrate
  agent: Lead
  uses: [critic, search, run_plan]
  enabled: false
  program: {calls: 20, steps: 5, parallel: 2, depth: 2, step_timeout: 30s, timeout: 90}
- {name: search, kind: go, auto: false, input: {type: object}, output: {type: object, properties: {hits: {type: array}}}}
- {name: save, kind: go, agents: [Clerk, Porter], auto: false, guards: [{on: input, max_bytes: 4KiB}]}
- {name: planner, kind: agent, auto: false, nats: {subject: agents.planner}}
- {name: writer, kind: agent, auto: false, nats: {subject: agents.writer}}
- {name: review, id: critic, kind: agent, auto: false, nats: {subject: agents.critic}}
- {name: critic, kind: go, auto: false}
`

func programs(t *testing.T) *bindings.Set {
	t.Helper()
	return load(t, unpack(t, "-- W/oneturn.yaml --\n"+programManifest))
}

func resolve(t *testing.T, set *bindings.Set, agent, model string) *bindings.Binding {
	t.Helper()
	b, err := set.Resolve("W", agent, model)
	require.NoError(t, err)
	return b
}

// stepNames are the names of the tools that steps may call, with the agent of each binding.
func stepNames(set *bindings.Set, b *bindings.Binding, agent string) string {
	var names []string
	for _, step := range set.StepTools(b, agent) {
		name := step.Tool
		if step.Agent != "" {
			name += "/" + step.Agent
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestProgramIsBoundWithItsSettings(t *testing.T) {
	t.Parallel()
	set := programs(t)
	require.Empty(t, lines(set, diag.SeverityError))
	require.NotContains(t, strings.Join(lines(set, diag.SeverityWarning), "\n"), "run_plan", "a program needs no model")

	plan := resolve(t, set, "Assistant", "")
	require.Equal(t, bindings.KindPlan, plan.Kind)
	require.Equal(t, &bindings.Program{
		Kind: bindings.KindPlan, Planner: "planner", Respond: "writer", Approve: true, Enabled: true,
		Limits: bindings.ProgramLimits{Calls: 50, Steps: 12, Parallel: 4, Depth: 3, StepTimeout: time.Minute, Timeout: 5 * time.Minute},
	}, plan.Program)
	require.Equal(t, bindings.EffectProgram, plan.Effect, "the defaults of the workflow are for other tools")
	require.True(t, plan.EffectDeclared)
	require.Equal(t, "1 5m0s", strings.Join([]string{string(rune('0' + plan.MaxAttempts)), plan.Timeout.String()}, " "))
	require.Equal(t, plan.Program, resolve(t, set, "Clerk", "Order").Program)

	require.Equal(t, &bindings.Program{
		Kind: bindings.KindOrchestrate, Uses: []string{"critic", "search", "run_plan"},
		Limits: bindings.ProgramLimits{Calls: 20, Steps: 5, Parallel: 2, Depth: 2, StepTimeout: 30 * time.Second, Timeout: 90 * time.Second},
	}, resolve(t, set, "Lead", "").Program)
}

func TestStepsCallWhatUsesListsElseTheToolsOfTheAgentElseAll(t *testing.T) {
	t.Parallel()
	set := programs(t)
	plan, lead := resolve(t, set, "Assistant", ""), resolve(t, set, "Lead", "")
	require.Equal(t, "save/Clerk", stepNames(set, plan, "Clerk"), "its list of tools without the program itself, which it has to name")
	require.Empty(t, stepNames(set, plan, "Boss"), "an empty list")
	require.Equal(t, "cp__agent_orchestrate/Lead search save/Clerk review critic", stepNames(set, plan, "Assistant"),
		"all but planner, writer and the program itself")
	require.Equal(t, "review search run_plan/Assistant", stepNames(set, lead, "Lead"), "the agent with the id comes before the tool of that name")
	require.Equal(t, "review search run_plan/Clerk", stepNames(set, lead, "Clerk"), "in a turn of Clerk")
	require.Equal(t, "critic", set.StepTools(lead, "Lead")[0].AgentID())
	require.Equal(t, "critic", set.StepTool(lead.Workflow, "Lead", set.StepTools(lead, "Lead")[0].Tool).AgentID())
	require.Nil(t, set.StepTool(lead.Workflow, "Lead", "unknown"))
	require.Nil(t, set.StepTool("unknown", "Lead", plan.Tool))
	require.Empty(t, set.StepTools(set.StepTools(plan, "Lead")[1], "Lead"), "not a program")

	for _, step := range set.StepTools(plan, "Clerk") {
		if step.Tool == "save" {
			require.Len(t, step.Guards, 1, "its own guards, not the list of what its agent may call by itself")
			require.Equal(t, bindings.EffectIdempotent, step.Effect)
		}
	}
}

func TestErrorOfAModelThatIsNotKnownNamesTheToolWithoutAModel(t *testing.T) {
	t.Parallel()
	_, err := programs(t).Resolve("W", "Assistant", "Plan")
	require.ErrorContains(t, err, `the model is not known; known: Order; the agent calls "run_plan" without a model: send model_name: ""`)
}

func TestPlannerAndResponderOfAProgramAreFound(t *testing.T) {
	t.Parallel()
	set := programs(t)
	plan, lead := resolve(t, set, "Assistant", ""), resolve(t, set, "Lead", "")
	require.Equal(t, "planner", set.Planner(plan, "Assistant").Tool)
	require.Equal(t, "writer", set.Responder(plan, "Assistant").Tool)
	require.Nil(t, set.Planner(lead, "Lead"))
	require.Nil(t, set.Responder(lead, "Lead"))
	require.Nil(t, set.Planner(set.Planner(plan, "Lead"), "Lead"), "not a program")
}

func TestPlanOfAProducerFindsTheOnlyPlanToolElseTheAgents(t *testing.T) {
	t.Parallel()
	set := programs(t)
	for _, agent := range []string{"", "Assistant", "Lead"} {
		b, err := set.ResolvePlan("w", agent)
		require.NoError(t, err)
		require.Equal(t, "run_plan", b.Tool, agent)
	}
	b, err := set.ResolvePlan("W", "Clerk")
	require.NoError(t, err)
	require.Equal(t, "Clerk", b.Agent)

	set = load(t, unpack(t, `
-- Two/oneturn.yaml --
tools: [{name: one, kind: plan, agent: A}, {name: two, kind: plan, agent: B}]
-- Silent/oneturn.yaml --
tools: [{name: run_plan, kind: plan, auto: false}]
-- None/oneturn.yaml --
tools: [{name: t, kind: orchestrate, agent: A}]
-- Broken/oneturn.yaml --
tools: [{name: run_plan, kind: plan, agent: A, uses: [t]}]
`))
	b, err = set.ResolvePlan("Two", "B")
	require.NoError(t, err)
	require.Equal(t, "two", b.Tool)
	b, err = set.ResolvePlan("Silent", "A")
	require.NoError(t, err)
	require.Equal(t, "run_plan", b.Tool)
	require.Same(t, b, set.Bound("Silent", "A", "run_plan"), "a takeover finds it by its name")
	_, err = set.ResolvePlan("Two", "")
	require.ErrorContains(t, err, `workflow "Two" runs no plan: it has several tools of kind plan (one, two): name the agent of one`)
	for workflow, want := range map[string]string{
		"Two":    `workflow "Two" runs no plan of agent "C": it has several tools of kind plan (one, two): name the agent of one`,
		"None":   `workflow "None" runs no plan of agent "C": no tool has kind: plan`,
		"Broken": `uses names the unknown tool "t"`,
		"Thre":   "this worker does not know workflow",
	} {
		_, err = set.ResolvePlan(workflow, "C")
		require.ErrorContains(t, err, want)
	}
}

func TestToolsThatOnlyStepsCallAreCallableInWorkflowsWithPrograms(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- With/oneturn.yaml --
tools: [{name: run_plan, kind: plan, agent: A}, {name: one, auto: false, nats: {subject: s.one}}]
-- Without/oneturn.yaml --
tools: [{name: two, auto: false, nats: {subject: s.two}}]
`))
	var names []string
	for _, b := range set.Callable() {
		names = append(names, b.Tool)
	}
	require.Equal(t, []string{"run_plan", "run_plan", "one"}, names)
}

func TestMistakesInProgramsAreNamedWithLineAndFix(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- Keys/oneturn.yaml --
tools:
- {name: a, kind: plan, agent: A, effect: none, cache: 5m, max_attempts: 2, timeout: 3s}
- {name: b, kind: orchestrate, agent: A, file: b.py, function: f, nats: {subject: s.t}, id: x, ui: {component: C}}
- {name: c, kind: go, agent: A, uses: [a], enabled: false}
- {name: d, kind: plan, agent: A, program: {calls: 0, steps: 1001, parallel: 1.5, depth: 11, step_timeout: soon, timeout: 0, retries: 2}}
- {name: e, kind: plan, agent: A, program: 5, uses: {a: b}, planner: [p], approve: perhaps}
-- Names/oneturn.yaml --
agents: {A: {model: M}, B: {model: N}, C: {tools: [run_plan, c]}, E: {tools: [f, save]}}
models: {M: {type: object}, N: {type: object}}
tools:
- name: run_plan
  kind: plan
  agents: [A, C]
  uses: [serch, search,
    save]
- {name: b, kind: plan, agent: B, planner: writr, respond: b}
- {name: c, kind: orchestrate, agent: C}
- {name: d, kind: orchestrate, agent: D, uses: [search], planner: save}
- {name: search, kind: go, auto: false}
- {name: writer, kind: agent, auto: false, nats: {subject: a.writer}}
- {name: save, kind: go, agents: [A, B]}
- {name: f, kind: plan, agent: E}
-- tools.oneturn.yaml --
tools: [{name: plans, kind: plan}]
`))
	require.Equal(t, strings.TrimSpace(`
tools.oneturn.yaml:1: error: tool plans runs programs, whose steps call the tools of a workflow [shared_program]: declare it in the workflow that has the tools of its steps
Keys/oneturn.yaml:2: error: tool a cannot be used: effect is not a key of tools of kind plan [key_not_allowed]: remove it: each step has the effect of its tool
Keys/oneturn.yaml:2: error: tool a cannot be used: cache is not a key of tools of kind plan [key_not_allowed]: remove it, and set cache of the tools that steps call
Keys/oneturn.yaml:2: error: tool a cannot be used: max_attempts is not a key of tools of kind plan [key_not_allowed]: remove it, and set max_attempts of the tools that steps call
Keys/oneturn.yaml:2: error: tool a cannot be used: timeout is not a key of tools of kind plan [key_not_allowed]: write program: {timeout: 5m}
Keys/oneturn.yaml:3: error: tool b cannot be used: ui is not a key of tools of kind orchestrate [key_not_allowed]: remove it; approve: true asks a person before the first step
Keys/oneturn.yaml:3: error: tool b cannot be used: id is not a key of tools of kind orchestrate [key_not_allowed]: remove it: the tool is called by its name
Keys/oneturn.yaml:3: error: tool b cannot be used: file is not a key of tools of kind orchestrate [key_not_allowed]: remove it, or remove kind
Keys/oneturn.yaml:3: error: tool b cannot be used: function is not a key of tools of kind orchestrate [key_not_allowed]: remove it; name is the name of the tool
Keys/oneturn.yaml:3: error: tool b cannot be used: nats is not a key of tools of kind orchestrate [key_not_allowed]: remove it, or remove kind
Keys/oneturn.yaml:4: error: tool c cannot be used: uses is not a key of tools of kind go [key_not_allowed]: remove it, or write kind: plan or kind: orchestrate
Keys/oneturn.yaml:4: error: tool c cannot be used: enabled is not a key of tools of kind go [key_not_allowed]: remove it, or write kind: plan or kind: orchestrate
Keys/oneturn.yaml:5: error: program has no key "retries" [unknown_key]: known: calls, depth, parallel, step_timeout, steps, timeout
Keys/oneturn.yaml:5: error: tool d cannot be used: invalid calls 0: must be a whole number from 1 to 1000 [bad_number]: write for example calls: 4
Keys/oneturn.yaml:5: error: tool d cannot be used: invalid steps 1001: must be a whole number from 1 to 1000 [bad_number]: write for example steps: 4
Keys/oneturn.yaml:5: error: tool d cannot be used: invalid parallel 1.5: must be a whole number from 1 to 100 [bad_number]: write for example parallel: 4
Keys/oneturn.yaml:5: error: tool d cannot be used: invalid depth 11: must be a whole number from 1 to 10 [bad_number]: write for example depth: 4
Keys/oneturn.yaml:5: error: tool d cannot be used: step_timeout: "soon" is not a duration up to 168h [bad_timeout]: write for example step_timeout: 30s, or a number of seconds
Keys/oneturn.yaml:5: error: tool d cannot be used: timeout: "0" is not between 0 and 168h [bad_timeout]: write for example timeout: 30s, or a number of seconds
Keys/oneturn.yaml:6: error: tool e cannot be used: uses must be a list of texts [wrong_shape]: write for example uses: [search, save]
Keys/oneturn.yaml:6: error: tool e cannot be used: planner must be a text of one line [wrong_shape]: write a text
Keys/oneturn.yaml:6: error: tool e cannot be used: invalid approve "perhaps": must be true or false [wrong_shape]: write true or false
Keys/oneturn.yaml:6: error: tool e cannot be used: program must be a map [wrong_shape]: write for example program: {calls: 20, step_timeout: 30s}
Names/oneturn.yaml:4: error: tool run_plan cannot be used: a step that names "save" could mean several tools, or one with several models [ambiguous_tool]: rename one of them, give the tool an input schema, or list the tools of steps under uses
Names/oneturn.yaml:7: error: tool run_plan cannot be used: uses names the unknown tool "serch" [unknown_tool]: did you mean "search"?
Names/oneturn.yaml:9: error: tool b cannot be used: planner names the unknown tool "writr" [unknown_tool]: did you mean "writer"?
Names/oneturn.yaml:9: error: tool b cannot be used: respond names "b", which runs programs itself [unknown_tool]: name an agent
Names/oneturn.yaml:11: error: tool d cannot be used: planner names "save", which could mean several tools, or one with several models [ambiguous_tool]: rename one of them, or give the tool an input schema
Names/oneturn.yaml:15: error: tool f cannot be used: a step that names "save" could mean several tools, or one with several models [ambiguous_tool]: rename one of them, give the tool an input schema, or list the tools of steps under uses
`), strings.Join(lines(set, diag.SeverityError), "\n"))
}

// TestManyProgramsAndToolsAreCheckedInTime has the worst case that the bounds of a manifest allow: each program can
// use each tool, and all tools share a few names.
func TestManyProgramsAndToolsAreCheckedInTime(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("-- W/oneturn.yaml --\ntools:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "- {name: plan%d, kind: plan, auto: false}\n- {name: t%d, kind: go, agent: A%d}\n", i, i%100, i)
	}
	root := unpack(t, b.String())
	start := time.Now()
	set := load(t, root)
	require.Less(t, time.Since(start), 30*time.Second, "a second on an idle machine")
	require.NotEmpty(t, lines(set, diag.SeverityError))
}
