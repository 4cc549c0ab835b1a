package handlers_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

func TestTextOfAnAgentIsStoredOnceAndNothingElse(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	m := k.deliver("m1", "Interviewer", "What shall I build?")
	k.handled(again(m))
	k.deliver("m1", "Interviewer", "What shall I build?")
	require.Equal(t, []string{"text"}, k.kinds("m1"))
	text := k.of("m1", "text")
	require.Equal(t, "text", text["kind"])
	require.Equal(t, "What shall I build?", text["content"])
	require.Equal(t, false, text["ui_hidden"])
	require.Equal(t, true, text["is_visual"])
}

func TestMessageOfAUserIsAnEventOfAnotherKind(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	k.deliver("m1", events.AgentUser, "A shop, please.", func(e *events.AgentMessage) { e.UserID = "ada" })
	text := k.of("m1", "text")
	require.Equal(t, "user_message", text["kind"])
	require.Equal(t, "ada", text["user_id"])
	require.Equal(t, "A shop, please.", text["content"])
}

func TestContentOfAUserMayBeAList(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow + `
handoffs:
- {from: user, to: Architect, trigger: NEXT}
- {from: user, to: Interviewer}
`}, nothing)
	parts := []any{map[string]any{"type": "text", "text": "NEXT"}, map[string]any{"type": "image_url", "image_url": map[string]any{"url": "https://example.com/a.png"}}}
	k.deliver("m1", events.AgentUser, parts)
	require.Equal(t, parts, k.of("m1", "text")["content"])
	require.Equal(t, "Interviewer", k.of("m1", "handoff")["to"], "rules and triggers match texts")
}

func TestTextOfAnAgentThatTheManifestsDoNotNameHasAWarning(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	var log bytes.Buffer
	k.Logger = slog.New(slog.NewTextHandler(&log, nil))
	k.deliver("m1", "Interviever", "What shall I build?")
	require.Equal(t, []any{"unknown_agent"}, k.of("m1", "text")["warnings"])
	require.Contains(t, log.String(), `did you mean \"Interviewer\"?`)
	for id, agent := range map[string]string{"m2": "Interviewer", "m3": events.AgentUser, "m4": "user_proxy", "m5": "Architect"} {
		k.deliver(id, agent, `{"title":"Shop"}`)
		require.Nil(t, k.of(id, "text")["warnings"], agent)
	}
	unlisted := newMessageKit(t, map[string]string{"oneturn.yaml": "context: {x: 1}\n"}, nothing)
	unlisted.deliver("m1", "Interviever", "What shall I build?")
	require.Nil(t, unlisted.of("m1", "text")["warnings"], "the manifests list no agents")
}

func TestIDOfAMessageThatIsUsedAgainWithOtherContentChangesNothing(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	k.deliver("m1", "Interviewer", "one")
	k.deliver("m1", "Interviewer", "two")
	require.Equal(t, "one", k.of("m1", "text")["content"])
	stream, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	require.Equal(t, uint64(1), stream.CachedInfo().State.Msgs, "the other message is a dead letter")
}

func TestObjectInAMessageIsTheTurnOfItsAgent(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: []byte(`{"built":true}`)}, nil
	})
	m := k.deliver("m1", "Architect", "Here it is:\n```json\n{\"title\": \"Shop\", 'agent_message': \"A shop.\",}\n```")
	text := k.of("m1", "text")
	require.Equal(t, "A shop.", text["content"])
	require.Equal(t, map[string]any{"title": "Shop", "agent_message": "A shop."}, text["structured_output"])
	require.Equal(t, []any{"trailing_comma", "single_quotes"}, text["repairs"])
	require.Equal(t, "m1", text["turn_idempotency_key"])
	require.Equal(t, true, k.responseOf("m1")["success"])

	k.handled(again(m))
	require.EqualValues(t, 1, k.entered.Load())
}

func TestMessageAndEventWithOneTurnKeyAreOneTurn(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	k.deliver("m1", "Architect", `{"title":"Shop"}`, func(e *events.AgentMessage) { e.Turn = "turn" })
	k.deliverTurn("turn", "Architect", map[string]any{"title": "Shop"})
	require.EqualValues(t, 1, k.entered.Load())
}

func TestOutputThatCannotBeReadEndsItsTurnWithFeedback(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	for id, content := range map[string]string{"m1": `{"title": "Sho`, "m2": "I would rather talk about the weather."} {
		k.deliver(id, "Architect", content)
		require.Equal(t, true, k.of(id, "text")["ui_hidden"])
		response := k.responseOf(id)
		require.Equal(t, "validation_failed", response["code"], id)
		require.NotEmpty(t, response["payload"].(map[string]any)["feedback"]) //nolint:forcetypeassert // the schema of the event
	}
	require.Zero(t, k.entered.Load())
}

func TestObjectThatDoesNotFitTheModelEndsItsTurnWithFeedback(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	k.deliver("m1", "Architect", `{"name":"Shop"}`)
	require.Equal(t, "validation_failed", k.responseOf("m1")["code"])
	require.Zero(t, k.entered.Load())
}

func TestOutputOfAnAgentWithoutAToolIsStored(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	m := k.deliver("good", "Critic", `{"title":"Shop"}`)
	k.handled(again(m))
	k.deliver("misfit", "Critic", `{"name":"Shop"}`)
	k.deliver("none", "Critic", `no JSON`)
	require.Equal(t, []string{"text", "structured_output"}, k.kinds("good"))
	good := k.of("good", "structured_output")
	require.Equal(t, true, good["success"])
	require.Equal(t, map[string]any{"title": "Shop"}, good["payload"])
	for _, id := range []string{"misfit", "none"} {
		failed := k.of(id, "structured_output")
		require.Equal(t, "validation_failed", failed["code"], id)
		require.NotEmpty(t, failed["payload"].(map[string]any)["feedback"], id) //nolint:forcetypeassert // the schema of the event
	}
	require.Zero(t, k.entered.Load())
}

func TestTokenSetsItsVariableOnceAndIsHidden(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	m := k.deliver("m1", "Interviewer", "next")
	k.handled(again(m))
	k.deliver("m2", "Interviewer", "NEXT")
	require.Equal(t, []string{"text", "context_update.interview_done"}, k.kinds("m1"))
	require.Equal(t, []string{"text"}, k.kinds("m2"), "it has the value already")
	require.Equal(t, true, k.of("m2", "text")["ui_hidden"])
	require.Equal(t, true, k.of("m1", "context_update", "interview_done")["value"])
	require.Equal(t, true, k.variables()["interview_done"])
}

func TestMessageThatNamesNoChatOrIDIsADeadLetter(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	for _, body := range []string{`{"kind":"agent_message","agent":"A","content":"x","chat_id":"chat"}`, `{"kind":"agent_message"`, `[]`} {
		m := k.writes("m1", "Interviewer", "x")
		m.Data = []byte(body)
		k.handled(m)
	}
	foreign := k.writes("m1", "Interviewer", "x")
	foreign.Subject = k.space.In("default", events.KindAgentMessage, "other", "WF", "chat")
	k.handled(foreign)
	stream, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	require.Equal(t, uint64(4), stream.CachedInfo().State.Msgs)
}

func TestMessageOfAnUnknownWorkflowIsOfferedToOthersAndThenStored(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	other := func(e *events.AgentMessage) { e.Workflow = "Other" }
	m := k.writes("m1", "Interviewer", "x", other)
	m.Subject = k.space.In("default", events.KindAgentMessage, "app", "Other", "chat")
	require.Equal(t, inbound.Nak, k.Handle(t.Context(), m).Do)
	m.Stored = m.Stored.Add(-k.BindingGrace * 2)
	k.handled(again(m))
	require.Equal(t, "x", k.of("m1", "text")["content"])
	require.Equal(t, "undecided", k.of("m1", "handoff")["reason"])
	require.Equal(t, "unknown_workflow", k.of("m1", "handoff")["code"])
}

// noVariables is a store of variables that cannot be reached.
type noVariables struct{ variables.Store }

func (noVariables) Apply(context.Context, string, string, variables.Message) (variables.Applied, error) {
	return variables.Applied{}, errors.New("no response from the server")
}

func TestMessageContinuesFromItsTextWhereItsWorkerHasStopped(t *testing.T) {
	t.Parallel()
	for _, resumed := range []bool{false, true} {
		k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
		whole := k.Variables
		k.Variables = noVariables{whole}
		m := k.writes("m1", "Interviewer", "NEXT")
		require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
		require.Equal(t, []string{"text"}, k.kinds("m1"))
		k.Variables = whole
		next := again(m)
		if resumed {
			body, err := events.EncodeResume(&events.Resume{
				TurnID: events.TurnID{App: "app", Chat: "chat"}, Workflow: "WF", Key: subjects.MessageKey("app", "chat", "", "m1").String(), Message: true,
			}, m.Stored)
			require.NoError(t, err)
			next.Subject, next.Data, next.Lease.Seq = k.space.In("default", events.KindResume, "app", "WF", "chat"), body, 99
		}
		k.handled(next)
		require.Equal(t, []string{"text", "context_update.interview_done"}, k.kinds("m1"))
		require.Equal(t, true, k.variables()["interview_done"])
	}
}

func TestTextIsReadOnceThoughItsDeliveryIsCountedTwice(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	whole := k.Variables
	k.Variables = noVariables{whole}
	m := k.writes("m1", "Interviewer", "NEXT")
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
	k.Variables = whole
	other := newMessageKit(t, map[string]string{"oneturn.yaml": "agents: {Interviewer: }\n"}, nothing)
	k.Bindings = other.Bindings
	k.handled(m) // the server has forgotten the first delivery: this one has the same number
	require.Equal(t, []string{"text", "context_update.interview_done"}, k.kinds("m1"))
}

// readsOrder counts how often it was read whether a message is in order, which is done before its text is stored.
type readsOrder struct {
	variables.Store

	n int
}

func (v *readsOrder) InOrder(ctx context.Context, app, chat string, m variables.Message) (bool, error) {
	v.n++
	return v.Store.InOrder(ctx, app, chat, m)
}

func TestTextThatIsStoredIsNotReadAgainWithTheNextDelivery(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	reads := &readsOrder{Store: k.Variables}
	k.Variables = reads
	m := k.deliver("m1", "Interviewer", "NEXT", numbered(1))
	kinds := k.kinds("m1")
	k.handled(again(m))
	require.Equal(t, 1, reads.n)
	require.Equal(t, kinds, k.kinds("m1"))
	other := k.writes("m1", "Interviewer", "something else", numbered(1))
	k.handled(again(other))
	require.Equal(t, 1, reads.n)
	require.Equal(t, []string{"message_conflict"}, k.deadReasons())
}

func TestTurnOfAMessageThatIsResumedIsAsOldAsTheMessage(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": handoffWorkflow}, nothing)
	k.Variables = &failsOnce{k.Variables, 1}
	m := k.writes("m1", "Architect", `{"title":"Shop"}`)
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
	k.MaxEventAge = -time.Minute // the text is older, whatever the two clocks differ by, and the resume is not
	body, err := events.EncodeResume(&events.Resume{
		TurnID: events.TurnID{App: "app", Chat: "chat"}, Workflow: "WF", Key: subjects.MessageKey("app", "chat", "", "m1").String(), Message: true,
	}, m.Stored)
	require.NoError(t, err)
	next := again(m)
	next.Subject, next.Data, next.Lease.Seq, next.Stored = k.space.In("default", events.KindResume, "app", "WF", "chat"), body, 99, time.Now().Add(time.Hour)
	k.handled(next)
	require.Equal(t, "too_old", k.responseOf("m1")["code"])
	require.Zero(t, k.entered.Load())
}

func TestDeadLetterOfAnUnknownKindNamesTheKindsOfMessages(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	m := k.writes("m1", "Interviewer", "x")
	m.Data = []byte(`{"kind":"agent_mesage"}`)
	k.handled(m)
	stream, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	dead, err := stream.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Contains(t, dead.Header.Get("Oneturn-Error"), "agent_message, user_message")
}
