package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

// deciding is a workflow with a condition for a model on the messages of both agents; the Architect's make a turn.
func deciding() map[string]string {
	return map[string]string{"oneturn.yaml": `
agents: {Interviewer: , Architect: {model: Plan}}
models:
  Plan: {type: object, required: [title], properties: {title: {type: string}}}
tools:
- {name: build, kind: go, agent: Architect, effect: unsafe}
- {name: judge, kind: agent, auto: false, nats: {subject: agents.judge}}
`, "handoffs.yaml": `
decider: judge
handoff_rules:
- {source_agent: Interviewer, target_agent: Architect, handoff_type: condition, condition: the user agrees}
- {source_agent: Architect, target_agent: Interviewer, handoff_type: condition, condition: the user agrees}
`}
}

// judged is a tool function that answers as the decider and builds nothing; asked counts the questions.
func judged(asked *int, decider toolFunc) toolFunc {
	return func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if call.Name != "judge" {
			return tools.Result{}, nil
		}
		*asked++
		return decider(ctx, call)
	}
}

func replies(reply string) toolFunc {
	return func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: json.RawMessage(reply)}, nil
	}
}

func TestDeciderIsAskedOnceThoughItsReplyIsTooLargeToStore(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2<<20)
	for name, one := range map[string]struct {
		reply, to, code string
	}{
		"an answer":     {`{"holds":true,"why":"` + long + `"}`, "Architect", ""},
		"not an answer": {`{"why":"` + long + `"}`, "", "decider_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			k := newMessageKit(t, deciding(), judged(&asked, replies(one.reply)))
			k.limitRecords(1 << 20)
			m := k.deliver("m1", "Interviewer", "Shall I?")
			k.handled(again(m))
			require.Equal(t, 1, asked)
			handoff := k.of("m1", "handoff")
			if one.to == "" {
				require.Equal(t, one.code, handoff["code"])
				return
			}
			require.Equal(t, one.to, handoff["to"])
		})
	}
}

func TestDeciderIsAskedAgainForAnotherQuestionOfTheSameRule(t *testing.T) {
	t.Parallel()
	asked := 0
	k := newMessageKit(t, deciding(), judged(&asked, replies(`{"holds":true}`)))
	k.Variables = &failsOnce{k.Variables, 3} // once the answer is stored
	m := k.writes("m1", "Interviewer", "Enough of this.")
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
	require.Equal(t, 1, asked)
	changed := deciding()
	changed["handoffs.yaml"] = strings.ReplaceAll(changed["handoffs.yaml"], "the user agrees", "the user wants more")
	other := newMessageKit(t, changed, judged(&asked, replies(`{"holds":false}`)))
	k.Bindings, k.Tool = other.Bindings, other.Tool
	k.handled(again(m))
	require.Equal(t, 2, asked)
	require.Equal(t, "no_rule", k.of("m1", "handoff")["reason"], "the first answer was about the user that agrees")
	k.handled(again(m))
	require.Equal(t, 2, asked)
}

func TestDeciderIsAskedAgainOnceTheMessageHasExpired(t *testing.T) {
	t.Parallel()
	asked := 0
	k := newMessageKit(t, deciding(), judged(&asked, func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: json.RawMessage(fmt.Sprintf(`{"holds":%t}`, asked == 1))}, nil
	}))
	k.deliver("m1", "Interviewer", "Shall I?")
	require.Equal(t, "Architect", k.of("m1", "handoff")["to"])
	k.expireText("m1")
	k.deliver("m1", "Interviewer", "Or shall I not?")
	require.Equal(t, 2, asked)
	require.Equal(t, "no_rule", k.of("m1", "handoff")["reason"])
}

func TestLargeMessageIsPutToTheDecider(t *testing.T) {
	t.Parallel()
	asked := 0
	k := newMessageKit(t, deciding(), judged(&asked, replies(`{"holds":true}`)))
	k.limitRecords(1 << 20)
	k.deliver("m1", "Interviewer", strings.Repeat("x", 2<<20))
	require.Equal(t, 1, asked)
	require.Equal(t, "Architect", k.of("m1", "handoff")["to"])
}

func TestWorkerThatStopsDoesNotWaitForTheDecider(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"Interviewer", "Architect"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			ctx, drain := context.WithCancelCause(t.Context())
			asked := 0
			k := newMessageKit(t, deciding(), judged(&asked, func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
				drain(handlers.ErrDraining)
				select {
				case <-ctx.Done():
				case <-t.Context().Done():
				}
				return tools.Result{}, context.Cause(ctx)
			}))
			m := k.writes("m1", agent, `{"title":"Shop"}`)
			require.Equal(t, inbound.NakAfter(0), k.Handle(ctx, m))
			require.Equal(t, 1, asked)
			require.Nil(t, k.of("m1", "handoff"))
		})
	}
}
