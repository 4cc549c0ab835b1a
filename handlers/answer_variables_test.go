package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
)

const answerTriggers = `
agents: {A: {model: M}}
models: {M: {type: object}}
tools: [{name: t, agent: A, kind: go, effect: replay}]
context:
  choice: {triggers: [{type: ui_response, tool: Card, response_key: data.choice}]}
  stage:
    default: draft
    transitions:
      - {from: draft, to: review, trigger: {type: ui_response, tool: approve}}
      - {from: review, to: done, trigger: {type: ui_response, tool: t}}
  count: {default: 7}
`

// triggered is a kit whose workflow has variables that answers set.
func triggered(t *testing.T, tool tools.Invoker) *kit {
	t.Helper()
	k := newKit(t, tool)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "WF"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "WF", "oneturn.yaml"), []byte(answerTriggers), 0o600))
	set, err := bindings.Load(t.Context(), bindings.Options{Root: dir, Registered: map[string]bindings.Registered{"t": {}}})
	require.NoError(t, err)
	require.Empty(t, set.Diagnostics())
	k.Bindings = func() *bindings.Set { return set }
	return k
}

func choice(what any) any { return map[string]any{"data": map[string]any{"choice": what}} }

func TestAnswerSetsVariablesBeforeItsTurnContinues(t *testing.T) {
	t.Parallel()
	var seen map[string]any
	k := triggered(t, toolFunc(func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		var err error
		seen, err = call.LoadContext(ctx)
		return tools.Result{Set: map[string]any{"stage": "tool"}}, err
	}))
	a := k.asker("turn", "")
	a.ask("1")
	a.park("1")
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), choice("gold"))).Code)
	require.Equal(t, []any{"gold", "review", json.Number("7")}, []any{seen["choice"], seen["stage"], seen["count"]})
	require.Equal(t, map[string]any{"choice": "gold", "stage": "tool"}, k.loaded(), "the tool has changed it later")
}

func TestDuplicateOfAnAnswerDoesNotSetItsVariablesAgain(t *testing.T) {
	t.Parallel()
	k := triggered(t, toolFunc(nothing))
	a := k.asker("turn", "")
	a.ask("1")
	for delivery := range uint64(2) {
		m := k.answers(2, a.question("1"), choice("gold"))
		m.Lease.Delivery += delivery
		require.Equal(t, events.AnswerAccepted, k.handled(m).Code)
	}
	require.Equal(t, events.AnswerReplayed, k.handled(k.answers(3, a.question("1"), choice("gold"))).Code)
	require.Equal(t, events.AnswerConflict, k.handled(k.answers(4, a.question("1"), choice("lead"))).Code)
	require.Equal(t, map[string]any{"choice": "gold", "stage": "review"}, k.loaded())

	a.ask("2")
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(5, a.question("2"), choice(nil))).Code)
	require.Equal(t, map[string]any{"choice": "gold", "stage": "done"}, k.loaded(), "a key that is null sets nothing")
}

func TestAnswersThatSetNothing(t *testing.T) {
	t.Parallel()
	other := "Other"
	for name, c := range map[string]struct {
		ask   func(*events.ToolCall)
		value any
	}{
		"secret":         {func(e *events.ToolCall) { e.Secret = true }, choice("gold")},
		"text":           {func(*events.ToolCall) {}, "gold"},
		"another asker":  {func(e *events.ToolCall) { e.ComponentType, e.ToolName = &other, "other" }, choice("gold")},
		"without choice": {func(e *events.ToolCall) { e.ToolName = "other" }, map[string]any{"status": "cancelled"}},
	} {
		k := triggered(t, toolFunc(nothing))
		keys, err := secrets.Parse([]byte(secrets.NewKey()))
		require.NoError(t, err)
		k.SecretKeys = keys
		a := k.asker("turn", "")
		a.ask("1", c.ask)
		require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), c.value)).Code)
		require.Empty(t, k.loaded(), name)
	}
}

// refusesApply has a bucket that cannot be written to for a while.
type refusesApply struct {
	variables.Store

	err error
}

func (r *refusesApply) Apply(ctx context.Context, app, chat string, m variables.Message) (variables.Applied, error) {
	if r.err != nil {
		return variables.Applied{}, r.err
	}
	return r.Store.Apply(ctx, app, chat, m)
}

func TestAnswerWhoseVariablesCannotBeStoredYetIsRedelivered(t *testing.T) {
	t.Parallel()
	k := triggered(t, toolFunc(nothing))
	broken := &refusesApply{k.Variables, errors.New("no response from the server")}
	k.Variables = broken
	a := k.asker("turn", "")
	a.ask("1")
	a.park("1")
	m := k.answers(2, a.question("1"), choice("gold"))
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m.Message).Do)
	broken.err = nil
	m.Lease.Delivery++
	require.Equal(t, events.AnswerAccepted, k.handled(m).Code)
	require.Equal(t, map[string]any{"choice": "gold", "stage": "review"}, k.loaded())
	require.True(t, k.response().Success)
}

func TestTurnContinuesWithoutVariablesThatCanNeverBeStored(t *testing.T) {
	t.Parallel()
	k := triggered(t, toolFunc(nothing))
	k.Variables = &refusesApply{k.Variables, &events.Error{Code: events.CodeStateCorrupt}}
	a := k.asker("turn", "")
	a.ask("1")
	a.park("1")
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), choice("gold"))).Code)
	require.True(t, k.response().Success)
}

// slowApply has the handler of an answer set nothing before the turn has ended.
type slowApply struct {
	variables.Store

	skip int
}

func (s *slowApply) Apply(ctx context.Context, app, chat string, m variables.Message) (variables.Applied, error) {
	if s.skip--; s.skip >= 0 {
		return variables.Applied{}, nil
	}
	return s.Store.Apply(ctx, app, chat, m)
}

func TestVariablesOfAnswersAreSetWhenTheResponseIsStored(t *testing.T) {
	t.Parallel()
	k := triggered(t, toolFunc(nothing))
	k.Variables = &slowApply{k.Variables, 1}
	a := k.asker("turn", "")
	a.ask("1")
	a.park("1")
	require.Equal(t, events.AnswerAccepted, k.handled(k.answers(2, a.question("1"), choice("gold"))).Code)
	require.True(t, k.response().Success, k.response().Content)
	require.Equal(t, map[string]any{"choice": "gold", "stage": "review"}, k.loaded())
}
