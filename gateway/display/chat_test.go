package display_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/display"
)

// Whenever a client connects, it sees in the end what a client sees that was there from the beginning.
func TestSnapshotAndStreamDisplayTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		h := random(rt)
		tools := map[string]bool{"Form": rapid.Bool().Draw(rt, "has the tool Form")}
		first := newClient(t)
		h.stream(display.New(), &display.View{Tools: tools}, first, 0)

		cut := rapid.IntRange(0, len(h.events)).Draw(rt, "cut")
		chat, view, second := display.New(), &display.View{Tools: tools}, newClient(t)
		h.load(chat, 0, cut)
		second.take(view.Snapshot(chat, nil)...)
		second.take(view.Activities(chat)...)
		h.stream(chat.Continued(), view, second, cut)
		other := newClient(t) // of another stream that begins with the same chat
		other.take((&display.View{Tools: tools}).Snapshot(chat, nil)...)
		again := display.New()
		h.load(again, 0, cut)
		expected := newClient(t)
		expected.take((&display.View{Tools: tools}).Snapshot(again, nil)...)
		require.Equal(rt, expected.displayed(), other.displayed(), "a chat that was continued stays as it is")

		whole, third := display.New(), newClient(t)
		h.load(whole, 0, len(h.events))
		third.take((&display.View{Tools: tools}).Snapshot(whole, nil)...)
		require.Equal(rt, third.displayed(), second.displayed(), "snapshot at %d and stream", cut)
		if first.state == nil {
			first.state = third.state // nothing has changed it
		}
		require.Equal(rt, third.displayed(), first.displayed(), "stream alone")
	})
}

func TestQuestionIsDisplayedOnceAndInTheModeOfTheClient(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	h.call("t", nil)
	h.ask("t", "1", "Approval", events.DisplayInline)
	h.ask("t", "2", "Composer", events.DisplayComposer)
	chat := display.New()
	h.load(chat, 0, len(h.events))

	plain := &display.View{}
	interrupts := plain.Interrupts(chat)
	require.Len(t, interrupts, 1)
	require.Equal(t, "int_t/1", interrupts[0].ID)
	require.Equal(t, "Really?", interrupts[0].Message)
	require.JSONEq(t, `{"type":"object"}`, string(interrupts[0].ResponseSchema))
	require.Equal(t, agui.ReasonInputRequired, interrupts[0].Reason, "tool_call would hide the result in CopilotKit")

	with := &display.View{Tools: map[string]bool{"Approval": true}}
	require.Empty(t, with.Interrupts(chat))
	require.Equal(t, []display.AnswerMode{display.ByFrontendTool, display.ByComposer}, modes(with.Questions(chat)))
	snapshot, ok := with.Snapshot(chat, nil)[0].(*agui.MessagesSnapshot)
	require.True(t, ok)
	require.Len(t, snapshot.Messages, 3)
	require.Equal(t, "Really?", snapshot.Messages[2].Content.String(), "the composer's question is a text")
	data, err := snapshot.MarshalJSON()
	require.NoError(t, err)
	require.NotContains(t, string(data), "oneturn.in.secret", "the subject for answers stays in the gateway")
}

func modes(questions []display.Question) []display.AnswerMode {
	var all []display.AnswerMode
	for _, q := range questions {
		all = append(all, q.Mode)
	}
	return all
}

func TestOwnToolMessageOfAClientStandsForTheResult(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	h.call("t", nil)
	h.ask("t", "1", "Approval", events.DisplayInline)
	h.ack("t/1", events.AckAccepted, false)
	own := agui.ToolMessage("mine", "t/1", `{"status":"approved"}`)
	view := &display.View{Tools: map[string]bool{"Approval": true}, Answers: map[string]agui.Message{"t/1": own}}
	chat := display.New()
	h.load(chat, 0, 2)
	snapshot, ok := view.Snapshot(chat, nil)[0].(*agui.MessagesSnapshot)
	require.True(t, ok)
	require.Equal(t, own, snapshot.Messages[2], "without it the client would drop its answer")
	for _, e := range view.Render(chat, h.apply(chat, 2)) {
		require.NotEqual(t, agui.TypeToolCallResult, e.Type(), "the client would display two results")
	}
}

func TestSurfaceThatWasDismissedIsNotDisplayedAgain(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	h.call("t", nil)
	h.show("t", "s:1", "Card")
	h.ask("t", "1", "Approval", events.DisplayInline)
	h.ack("t/1", events.AckAccepted, false)
	h.dismiss("t/s:1")
	h.dismiss("t/1")
	chat := display.New()
	h.load(chat, 0, len(h.events))
	reloaded := newClient(t)
	reloaded.take((&display.View{}).Snapshot(chat, nil)...)
	require.Len(t, reloaded.messages, 1, "the call of the turn")

	connected, chat, view := newClient(t), display.New(), &display.View{}
	h.load(chat, 0, 4)
	connected.take(view.Snapshot(chat, nil)...)
	require.Len(t, connected.messages, 5)
	h.stream(chat.Continued(), view, connected, 4)
	require.Len(t, connected.messages, 1, "a client that has connected after the surface was displayed learns of its end")
}

func TestHiddenTextsAreNotShown(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	h.text("m1", "A", "NEXT", true)
	h.add(events.KindText, &events.Text{MessageID: "m2", Agent: "B", Content: "background", IsVisual: false})
	h.add(events.KindUserMessage, &events.Text{MessageID: "u1", Agent: "user", Content: "seen", IsVisual: false})
	chat := display.New()
	h.load(chat, 0, len(h.events))
	snapshot, ok := (&display.View{}).Snapshot(chat, nil)[0].(*agui.MessagesSnapshot)
	require.True(t, ok)
	require.Len(t, snapshot.Messages, 1)
	require.Equal(t, "u1", snapshot.Messages[0].ID)
	require.NotZero(t, chat.Stored("u1"))
}

func TestMessageOfAUserWaitsUntilATurnOrAReply(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	chat := display.New()
	waits := func() bool {
		h.load(chat, int(chat.Sequence()), len(h.events))
		message, _ := chat.Waiting()
		return message != ""
	}
	require.False(t, waits())
	h.user("u1", "build it")
	require.True(t, waits())
	h.call("t", nil)
	require.False(t, waits(), "a turn has taken it up")
	h.user("u2", "blue")
	require.False(t, waits(), "it is for the turn that runs")
	h.respond("t", true)
	require.False(t, waits())
	h.user("u3", "more")
	require.True(t, waits())
	h.text("m", "A", "no", true)
	require.False(t, waits(), "also a hidden text is a reply")
}

func TestLongChatKeepsItsNewestMessagesAndItsOpenQuestions(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	h.call("t", nil)
	h.ask("t", "1", "Approval", events.DisplayInline)
	for i := range 80 {
		h.text(strconv.Itoa(i), "A", strings.Repeat("x", 100_000), false)
	}
	chat := display.New()
	h.load(chat, 0, len(h.events))
	snapshot, ok := (&display.View{}).Snapshot(chat, nil)[0].(*agui.MessagesSnapshot)
	require.True(t, ok)
	data, err := snapshot.MarshalJSON()
	require.NoError(t, err)
	require.Less(t, len(data), agui.MaxEvent)
	require.Equal(t, "t/1", snapshot.Messages[1].ID)
	require.Equal(t, "msg_79", snapshot.Messages[len(snapshot.Messages)-1].ID)
}

func TestStateHasABoundedNumberOfTurns(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	for i := range 300 {
		h.call(fmt.Sprint("t", i), nil)
		h.respond(fmt.Sprint("t", i), true)
	}
	to, chat := newClient(t), display.New()
	h.stream(chat, &display.View{}, to, 0)
	require.Len(t, chat.State().Turns, 100)
	require.Equal(t, tree(t, chat.State()), to.state)
}

func TestStepsOfAProgramAreShownAsAnActivity(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	h.call("t", nil)
	h.add(events.KindPlanStarted, &events.PlanStarted{ToolCallID: "t", Turn: "t", Payload: events.PlanPayload{Steps: []events.PlanStep{
		{Call: "0", ToolName: "find", Needs: []string{}}, {Call: "1", ToolName: "refund", Needs: []string{"0"}},
	}}})
	h.call("t#0", func(e *events.ToolCall) { e.Program, e.Step, e.Turn, e.ToolName = "t", "0", "t", "find" })
	to, chat := newClient(t), display.New()
	h.stream(chat, &display.View{}, to, 0)
	steps := func() any { return to.acts["plan_t"].(map[string]any)["steps"] } //nolint:forcetypeassert // the test fails
	require.Equal(t, "running", steps().([]any)[0].(map[string]any)["state"])  //nolint:forcetypeassert // the test fails
	require.Equal(t, "pending", steps().([]any)[1].(map[string]any)["state"])  //nolint:forcetypeassert // the test fails
	require.Equal(t, []string{"t"}, chat.OpenTurns(), "a step is not a turn")
}

func TestEventThatCannotBeReadChangesNothing(t *testing.T) {
	t.Parallel()
	chat := display.New()
	for _, data := range []string{`{`, `[]`, `{"data":{"kind":7}}`, `{"type":"chat.unknown","data":{}}`, `{"data":{"kind":"tool_response","tool_call_id":"x"}}`, `{"data":{"kind":"tool_call_ack","tool_call_id":"x"}}`} {
		e, _ := display.Decode([]byte(data))
		require.Empty(t, (&display.View{}).Render(chat, chat.Apply(1, e)), data)
	}
}

func TestProgressOfACallThatHasEndedIsNotDisplayed(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	progress := func() {
		h.add(events.KindToolProgress, &events.ToolProgress{ToolCallID: "t", Corr: "t", ProgressPercent: events.Percent(50), StatusMessage: "half"})
	}
	progress()
	h.call("t", nil)
	progress()
	h.respond("t", true)
	progress()
	to := newClient(t)
	h.stream(display.New(), &display.View{}, to, 0)
	require.Equal(t, map[string]any{"tool_call_id": "t", "corr": "t", "phase": "done", "progress": 50.0, "message": "half"}, to.acts["act_t"])
}

func TestMessageWithTheIDOfACallHidesNothing(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	for _, id := range []string{"t", "t/1", "res_t", "msg_m"} {
		h.user(id, "I am "+id)
	}
	h.call("t", nil)
	h.ask("t", "1", "Approval", events.DisplayInline)
	h.text("m", "A", "hello", false)
	h.respond("t", true)
	chat, view := display.New(), &display.View{}
	h.load(chat, 0, len(h.events)-1)
	require.Len(t, view.Interrupts(chat), 1)
	require.Equal(t, []string{"t"}, chat.OpenTurns())
	h.load(chat, len(h.events)-1, len(h.events))
	to := newClient(t)
	to.take(view.Snapshot(chat, nil)...)
	require.Len(t, to.messages, 4+2+2+1)
}

func TestChatOfOpenQuestionsAndLargeVariablesHasABoundedSnapshot(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	h.call("t", nil)
	for i := range 60 {
		h.call(fmt.Sprint("t/", i), func(e *events.ToolCall) {
			component := "Approval"
			e.ComponentType, e.AwaitingResponse, e.InteractionType = &component, true, events.InteractionUITool
			e.Payload = events.ToolCallPayload{Shown: map[string]any{"text": strings.Repeat("x", 200<<10)}}
			e.Answer = &events.AnswerTo{Subject: "s"}
		})
		h.add(events.KindContextUpdate, &events.ContextUpdate{Variable: strconv.Itoa(i), Value: strings.Repeat("x", 200<<10), Agent: "A"})
	}
	to, chat, view := newClient(t), display.New(), &display.View{}
	h.load(chat, 0, len(h.events))
	for _, e := range view.Snapshot(chat, nil) {
		data, err := e.MarshalJSON()
		require.NoError(t, err)
		require.Less(t, len(data), agui.MaxEvent)
		to.take(e)
	}
	require.Len(t, view.Interrupts(chat), 60)
}

func TestQuestionToAnotherUserIsNotAsked(t *testing.T) {
	t.Parallel()
	h := &history{tb: t}
	h.call("t", nil)
	h.ask("t", "1", "Approval", events.DisplayInline)
	h.calls["t/1"].UserID = "bob"
	h.events = h.events[:1]
	h.add(events.KindToolCall, h.calls["t/1"])
	chat := display.New()
	h.load(chat, 0, 2)
	require.Empty(t, (&display.View{User: "ada"}).Interrupts(chat))
	require.Empty(t, (&display.View{User: "ada"}).Questions(chat))
	require.Len(t, (&display.View{User: "bob"}).Interrupts(chat), 1)
}
