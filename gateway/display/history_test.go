package display_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/display"
)

// history is a chat that a test writes.
type history struct {
	tb     require.TestingT
	events [][]byte
	calls  map[string]*events.ToolCall
}

func (h *history) add(kind string, e any) {
	data, err := events.Encode(kind, e, time.Unix(int64(len(h.events)), 0))
	require.NoError(h.tb, err)
	h.events = append(h.events, data)
}

func (h *history) user(id, text string) {
	h.add(events.KindUserMessage, &events.Text{MessageID: id, ID: id, Agent: "user", Content: text})
}

func (h *history) text(id, agent, text string, hidden bool) {
	h.add(events.KindText, &events.Text{MessageID: id, ID: id, Agent: agent, Content: text, UIHidden: hidden, IsVisual: true})
}

func (h *history) call(id string, change func(*events.ToolCall)) {
	e := &events.ToolCall{
		ID: id, Turn: id, ToolCallID: id, CallID: id, Corr: id, AppID: "a", ChatID: "c", Agent: "A", ToolName: "tool", WorkflowName: "W",
		InteractionType: events.InteractionAutoTool,
		Payload:         events.ToolCallPayload{ToolArgs: map[string]any{"text": "grüße \"✓\""}, InteractionType: events.InteractionAutoTool, AgentName: "A", WorkflowName: "W"},
	}
	if change != nil {
		change(e)
	}
	if h.calls == nil {
		h.calls = map[string]*events.ToolCall{}
	}
	h.calls[e.ToolCallID] = e
	h.add(events.KindToolCall, e)
}

// ask is a question of a call. Show is a surface.
func (h *history) ask(of, id, component, display string) {
	h.call(of+"/"+id, func(e *events.ToolCall) {
		e.ComponentType, e.Display, e.DisplayType, e.AwaitingResponse = &component, display, display, true
		e.InteractionType, e.ToolName = events.InteractionUITool, strings.ToLower(component)
		e.Payload = events.ToolCallPayload{Shown: map[string]any{"title": "Really?"}}
		e.Answer = &events.AnswerTo{Subject: "oneturn.in.secret", Schema: map[string]any{"type": "object"}}
	})
}

func (h *history) show(of, id, component string) {
	h.call(of+"/"+id, func(e *events.ToolCall) {
		e.ComponentType, e.Display, e.DisplayType = &component, events.DisplayInline, events.DisplayInline
		e.InteractionType, e.ToolName = events.InteractionUISurface, strings.ToLower(component)
		e.Payload = events.ToolCallPayload{Shown: map[string]any{"item": "lamp"}}
	})
}

func (h *history) dismiss(id string) { h.add(events.KindToolCallDismiss, h.calls[id].Dismiss()) }

func (h *history) ack(id, status string, dismissed bool) {
	ack := h.calls[id].Ack(status, "u")
	ack.Dismissed = dismissed
	h.add(events.KindToolCallAck, ack)
}

func (h *history) respond(id string, ok bool) {
	r := &events.ToolResponse{
		ID: id, Turn: id, ToolCallID: id, CallID: id, Corr: id, AppID: "a", ChatID: "c", Agent: "A", ToolName: "tool", WorkflowName: "W",
		InteractionType: events.InteractionAutoTool, Status: "ok", Success: true, Content: "done", Payload: json.RawMessage(`{"message":"done","status":"success"}`),
	}
	if !ok {
		r.Status, r.Success, r.Code, r.Content = "error", false, events.CodeUserError, "the printer is on fire"
		r.Payload = json.RawMessage(`{"status":"error","code":"user_error","message":"the printer is on fire"}`)
	}
	h.add(events.KindToolResponse, r)
}

// apply applies an event.
func (h *history) apply(c *display.Chat, i int) []display.Change {
	e, err := display.Decode(h.events[i])
	require.NoError(h.tb, err)
	return c.Apply(uint64(i+1), e)
}

// load applies the events from one on.
func (h *history) load(c *display.Chat, from, to int) {
	for i := from; i < to; i++ {
		h.apply(c, i)
	}
}

// stream applies events as they come, and gives a client what they change.
func (h *history) stream(c *display.Chat, v *display.View, to *client, from int) {
	for i := from; i < len(h.events); i++ {
		to.take(v.Render(c, h.apply(c, i))...)
	}
	to.take(v.Finish()...)
}

// random writes a chat: turns that overlap, with questions, surfaces and texts.
func random(rt *rapid.T) *history {
	h := &history{tb: rt}
	var turns, asked, shown []string
	for i := range rapid.IntRange(0, 40).Draw(rt, "events") {
		id := fmt.Sprintf("x%d", i)
		pick := func(of []string) string { return rapid.SampledFrom(of).Draw(rt, "which") }
		switch kind := rapid.IntRange(0, 10).Draw(rt, "kind"); {
		case kind == 0:
			h.user(id, "hello "+id)
		case kind == 1:
			h.text(id, "Writer", "text <b>"+id, rapid.Bool().Draw(rt, "hidden"))
		case kind <= 3:
			h.call(id, nil)
			turns = append(turns, id)
		case kind == 4 && len(turns) > 0:
			of := pick(turns)
			h.ask(of, id, pick([]string{"Approval", "Form"}), pick([]string{events.DisplayInline, events.DisplayComposer}))
			asked = append(asked, of+"/"+id)
		case kind == 5 && len(turns) > 0:
			of := pick(turns)
			h.show(of, "s:"+id, "Card")
			shown = append(shown, of+"/s:"+id)
		case kind == 6 && len(asked) > 0:
			q := pick(asked)
			asked = slices.DeleteFunc(asked, func(a string) bool { return a == q })
			h.ack(q, pick([]string{events.AckAccepted, events.AckExpired, events.AckCancelled}), rapid.Bool().Draw(rt, "dismissed"))
		case kind == 7 && len(turns) > 0:
			turn := pick(turns)
			turns = slices.DeleteFunc(turns, func(t string) bool { return t == turn })
			asked = slices.DeleteFunc(asked, func(a string) bool { return strings.HasPrefix(a, turn+"/") })
			h.respond(turn, rapid.Bool().Draw(rt, "ok"))
		case kind == 10 && len(shown) > 0:
			h.dismiss(pick(shown))
		case kind == 8:
			h.add(events.KindContextUpdate, &events.ContextUpdate{Variable: pick([]string{"a/b", "done"}), Value: i, Agent: "A"})
		case kind == 9:
			next := pick([]string{"Architect", "Writer"})
			h.add(events.KindHandoff, &events.Handoff{From: "A", To: &next, Reason: "condition"})
		}
	}
	return h
}
