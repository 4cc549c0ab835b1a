package bindings_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

// bound binds one Python function with this parameter list; fields are the model's, none
// means no model.
func bound(t *testing.T, signature string, fields ...string) *bindings.Binding {
	t.Helper()
	manifest := "tools: [{name: f, agent: A, file: t.py}]\n"
	if len(fields) > 0 {
		manifest = "tools: [{name: f, agent: A, file: t.py, schema: {type: object, properties: {" + strings.Join(fields, ": {}, ") + ": {}}}}]\n"
	}
	set := load(t, unpack(t, "-- W/oneturn.yaml --\n"+manifest+"-- W/t.py --\ndef f("+signature+"):\n    pass\n"))
	require.Len(t, set.Bindings(), 1, set.Diagnostics())
	return set.Bindings()[0]
}

func TestArgsMapFieldsToParameters(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	tests := []struct {
		name, signature string
		fields          []string
		data, want      m
	}{
		{"letter case and signs do not matter", "module_agents", []string{"ModuleAgents"}, m{"ModuleAgents": "x"}, m{"module_agents": "x"}},
		{"keyword-only parameters are filled", "*, name", []string{"name"}, m{"name": "x"}, m{"name": "x"}},
		{"positional-only parameters are not", "name, /", []string{"name"}, m{"name": "x"}, m{}},
		{"**kwargs alone get all fields", "**kwargs", []string{"name", "kwargs"}, m{"name": "x", "kwargs": "y"}, m{"name": "x", "kwargs": "y"}},
		{"*args get nothing", "*args", []string{"args"}, m{"args": "y"}, m{}},
		{"self is dropped", "self, name", []string{"self", "name"}, m{"self": "x", "name": "y"}, m{"name": "y"}},
		{"**kwargs gets what no parameter takes", "item_name, **rest", []string{"ItemName", "NoteText"}, m{"ItemName": "x", "NoteText": "y", "undeclared": 1, "itemName": "z"}, m{"item_name": "x", "NoteText": "y", "undeclared": 1}},
		{"**kwargs gets neither context nor self", "x=0, **rest", []string{"context_variables", "self"}, m{"context_variables": "x", "self": "y"}, m{}},
		{"two fields that fit alike fill nothing", "ab", []string{"a_b", "aB"}, m{"a_b": "first", "aB": "second"}, m{}},
		{"of two fields the one of the very name", "ab", []string{"ab", "aB"}, m{"ab": "first", "aB": "second"}, m{"ab": "first"}},
		{"the exact name is preferred", "a_b, ab", []string{"a_b", "ab"}, m{"a_b": "x", "ab": "y"}, m{"a_b": "x", "ab": "y"}},
		{"names of other scripts match themselves", "größe, имя", []string{"Größe", "Имя"}, m{"Größe": "x", "Имя": "y"}, m{"größe": "x", "имя": "y"}},
		{"a field that the model declares wins over the turn", "chat_id", []string{"chatId"}, m{"chatId": "mine"}, m{"chat_id": "mine"}},
		{"null in the data counts as filled", "agent", []string{"agent"}, m{"agent": nil}, m{"agent": nil}},
		{"the turn fills what is empty", "ChatId, app_id, enterpriseId, workflow_name, turn_idempotency_key, agentName, agent, user_id=None, run_id=None", []string{"x"}, m{}, m{
			"ChatId": "c1", "app_id": "app", "enterpriseId": "app", "workflow_name": "WF", "turn_idempotency_key": "turn-001", "agentName": "A", "agent": "A", "user_id": "ada", "run_id": "r1",
		}},
		{"an exact name is preferred without model too", "amount", nil, m{"Amount": "2", "amount": "1"}, m{"amount": "1"}},
		{"the context container is not an argument", "name, context_variables", []string{"name", "context_variables"}, m{"name": "x", "context_variables": "y"}, m{"name": "x"}},
		{"**runtime gets what the turn knows", "service, user_id='', **runtime", []string{"service"}, m{"service": "x"}, m{
			"service": "x", "user_id": "ada", "chat_id": "c1", "app_id": "app", "enterprise_id": "app", "workflow_name": "WF", "workflow": "WF",
			"turn_idempotency_key": "turn-001", "agent_name": "A", "agent": "A", "run_id": "r1",
		}},
		{"with **runtime the workflow is the turn's too", "order, Workflow=None, **runtime", nil, m{"order": "x", "workflow": "Payments", "WORKFLOW": "Other", "admin": true}, m{
			"order": "x", "Workflow": "WF", "user_id": "ada", "chat_id": "c1", "app_id": "app", "enterprise_id": "app", "workflow_name": "WF", "workflow": "WF",
			"turn_idempotency_key": "turn-001", "agent_name": "A", "agent": "A", "run_id": "r1",
		}},
		{"unless the model declares it", "workflow, **runtime", []string{"workflow"}, m{"workflow": "Payments"}, m{
			"workflow": "Payments", "user_id": "ada", "chat_id": "c1", "app_id": "app", "enterprise_id": "app", "workflow_name": "WF",
			"turn_idempotency_key": "turn-001", "agent_name": "A", "agent": "A", "run_id": "r1",
		}},
		{"elsewhere workflow is an ordinary name", "workflow", nil, m{"workflow": "Payments"}, m{"workflow": "Payments"}},
		{"without model all fields count", "first_name", nil, m{"firstName": "x", "other": "y"}, m{"first_name": "x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			turn := goldenTurn("A")
			turn.UserID, turn.Run = "ada", "r1"
			got, _ := bound(t, tt.signature, tt.fields...).Args(tt.data, turn)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestArgsOfAnEmptyTurnInjectNothing(t *testing.T) {
	t.Parallel()
	turn := goldenTurn("")
	turn.Chat = ""
	args, mapped := bound(t, "chat_id, agent, app_id, user_id", "x").Args(nil, turn)
	require.Equal(t, map[string]any{"app_id": "app"}, args)
	require.True(t, mapped)
}

func TestToolsBindWithUnknownSignatureWithoutAnInspector(t *testing.T) {
	t.Parallel()
	root := unpack(t, "-- W/oneturn.yaml --\ntools: [{name: f, agent: A, file: t.py}]\n-- W/t.py --\ndef f(a): pass\n")
	failing := func(context.Context, string, map[string][]byte) (map[string]bindings.PyFile, error) {
		return nil, errors.New("no python here")
	}
	for _, inspector := range []bindings.InspectFunc{nil, failing} {
		set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Inspect: inspector})
		require.NoError(t, err)
		b, err := set.Resolve("W", "A", "")
		require.NoError(t, err)
		require.True(t, b.SignatureUnknown)
		require.True(t, b.AcceptsContext)
		data := map[string]any{"A": "1", "b": "2"}
		args, mapped := b.Args(data, goldenTurn("A"))
		require.Equal(t, data, args)
		require.False(t, mapped)
		require.Equal(t, inspector != nil, strings.Contains(strings.Join(lines(set, diag.SeverityError), "\n"), "no python here"))
	}
}

// TestRestOfKeywordsFollowsTheManifest: MozaiksAI's handler leaves **kwargs empty next to named parameters.
func TestRestOfKeywordsFollowsTheManifest(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- Own/oneturn.yaml --
tools: [{name: f, agent: A, file: t.py, schema: {type: object, properties: {name: {}, other: {}}}}]
-- Own/t.py --
def f(name, **rest): pass
-- Theirs/tools.yaml --
tools: [{agent: A, file: t.py, function: f, auto_invoke: true}]
-- Theirs/structured_outputs.yaml --
models: {M: {type: model, fields: {name: {type: str}, other: {type: str}}}}
registry: {A: M}
-- Theirs/t.py --
def f(name, **rest): pass
`))
	for workflow, want := range map[string]map[string]any{"Own": {"name": "x", "other": "y"}, "Theirs": {"name": "x"}} {
		b, err := set.Resolve(workflow, "A", "")
		require.NoError(t, err)
		args, _ := b.Args(map[string]any{"name": "x", "other": "y"}, goldenTurn("A"))
		require.Equal(t, want, args, workflow)
	}
	found := strings.Join(lines(set, diag.SeverityInfo), "\n")
	require.Contains(t, found, "Theirs/tools.yaml:1: info: no parameter of tool f takes field other of model M")
	require.NotContains(t, found, "Own/")
}
