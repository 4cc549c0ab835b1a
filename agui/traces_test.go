package agui_test

import (
	"encoding/json"

	"github.com/oneturn/oneturn/agui"
)

// trace is the stream of a run.
type trace struct {
	name   string
	held   []agui.Message // of the input
	tools  []agui.Tool
	events []agui.Event
}

func (t trace) input(peer string) *agui.RunAgentInput {
	messages := t.held
	if messages == nil {
		messages = []agui.Message{agui.UserMessage("u1", "build it")}
	}
	b, err := json.Marshal(agui.RunAgentInput{ThreadID: "chat_1", RunID: "r1", ProtocolVersion: peer, Messages: messages, Tools: t.tools})
	if err != nil {
		panic(err)
	}
	in, err := read(string(b))
	if err != nil {
		panic(err)
	}
	return in
}

func started() agui.Event {
	return &agui.RunStarted{ThreadID: "chat_1", RunID: "r1", ProtocolVersion: agui.ProtocolVersion}
}

func finished(outcome *agui.Outcome) agui.Event {
	return &agui.RunFinished{ThreadID: "chat_1", RunID: "r1", Outcome: outcome}
}

// call is a call with its arguments.
func call(id, name string) []agui.Event {
	return []agui.Event{
		&agui.ToolCallStart{ToolCallID: id, ToolCallName: name},
		&agui.ToolCallArgs{ToolCallID: id, Delta: `{"services":["openai"],`},
		&agui.ToolCallArgs{ToolCallID: id, Delta: `"_ui":{}}`},
		&agui.ToolCallEnd{ToolCallID: id},
	}
}

func result(id, content string) agui.Event {
	return &agui.ToolCallResult{MessageID: agui.ResultID(id), ToolCallID: id, Content: agui.Text(content)}
}

func text(id, content string) []agui.Event {
	return []agui.Event{
		&agui.TextMessageStart{MessageID: id, Role: agui.RoleAssistant, Name: "Planner"},
		&agui.TextMessageContent{MessageID: id, Delta: content},
		&agui.TextMessageEnd{MessageID: id},
	}
}

func step(turn string, during ...agui.Event) []agui.Event {
	name := agui.StepName(turn)
	return join(&agui.StepStarted{StepName: name}, during, &agui.StepFinished{StepName: name})
}

// join is a list of events and lists of events.
func join(parts ...any) []agui.Event {
	var events []agui.Event
	for _, part := range parts {
		switch part := part.(type) {
		case agui.Event:
			events = append(events, part)
		case []agui.Event:
			events = append(events, part...)
		}
	}
	return events
}

func state(snapshot any) agui.Event { return &agui.StateSnapshot{Snapshot: snapshot} }

func asked(id string) agui.Interrupt {
	return agui.Interrupt{ID: agui.InterruptID(id), Reason: agui.ReasonInputRequired, ToolCallID: id, Message: "API keys needed", ResponseSchema: json.RawMessage(`{"type":"object"}`)}
}

// traces are the runs that a gateway sends, one for each way in which turns and questions proceed.
func traces() []trace {
	history := []agui.Message{
		agui.UserMessage("u1", "build it"), agui.AssistantMessage("tc_1", "", agui.Call("tc_1", "plan", "{}")), agui.ToolMessage("res_tc_1", "tc_1", "done"),
		agui.AssistantMessage("ui_2", "", agui.Call("ui_2", "Keys", `{"_ui":{}}`)),
	}
	restated := join(started(), &agui.MessagesSnapshot{Messages: history}, state(map[string]any{"turns": map[string]any{}}))
	keys := []agui.Tool{{Name: "Keys"}}
	return []trace{
		{name: "turn with a call", events: join(started(), state(map[string]any{"turns": map[string]any{}}), step("t1", join(
			&agui.StateDelta{Delta: agui.Patch{agui.Add(agui.Pointer("turns", "tc_t1"), map[string]any{"phase": "running"})}},
			call("tc_t1", "greet"),
			&agui.ActivitySnapshot{MessageID: "act_tc_t1", ActivityType: "oneturn.tool_progress", Content: map[string]any{"phase": "running"}},
			&agui.ActivityDelta{MessageID: "act_tc_t1", ActivityType: "oneturn.tool_progress", Patch: agui.Patch{agui.Replace("/phase", "done")}},
			result("tc_t1", `{"status":"ok"}`),
			&agui.StateDelta{Delta: agui.Patch{agui.Replace("/turns/tc_t1/phase", "done")}})...), finished(agui.Success()))},
		{name: "failed call", events: join(started(), step("t1", join(call("tc_t1", "greet"), result("tc_t1", `{"status":"error","code":"timeout"}`))...), finished(nil))},
		{name: "text with a call", events: join(started(), text("msg_t1", "I plan."),
			&agui.ToolCallStart{ToolCallID: "tc_t1", ToolCallName: "greet", ParentMessageID: "msg_t1"}, &agui.ToolCallArgs{ToolCallID: "tc_t1", Delta: "{}"},
			&agui.ToolCallEnd{ToolCallID: "tc_t1"}, result("tc_t1", ""), finished(agui.Success()))},
		{name: "question as an interrupt", events: join(started(), call("ui_1", "Keys"), state(nil), finished(agui.Interrupted(asked("ui_1"))))},
		{name: "two questions", events: join(started(), call("ui_1", "Keys"), call("ui_2", "Keys"), finished(agui.Interrupted(asked("ui_1"), asked("ui_2"))))},
		{name: "question to a tool of the client", tools: keys, events: join(started(), call("ui_1", "Keys"), finished(agui.Success("ui_1")))},
		{name: "answer by resume", held: history, events: join(started(), result("ui_2", `{"status":"ok"}`), finished(agui.Success()))},
		{
			name: "answer by a tool message", tools: keys, held: append(history[:4:4], agui.ToolMessage("x", "ui_2", "{}")),
			events: join(started(), text("msg_t3", "thanks"), finished(agui.Success())),
		},
		{name: "bad answer", held: history, events: join(started(), &agui.RunError{Message: "services: required", Code: "INVALID_RESUME"})},
		{name: "dismissed question", held: history, events: join(started(), result("ui_2", `{"status":"cancelled"}`), finished(agui.Success()))},
		{name: "surface", events: join(started(), call("ui_1", "Chart"), result("ui_1", `{"status":"rendered"}`), finished(agui.Success()))},
		{name: "question in the composer", events: join(started(), text("msg_t1", "Which city?"),
			&agui.RunFinished{ThreadID: "chat_1", RunID: "r1", Outcome: agui.Success(), Result: map[string]any{"status": 0, "reason": "awaiting_user_input"}})},
		{name: "fresh tab", events: join(restated, finished(agui.Interrupted(asked("ui_2"))))},
		{name: "connect with a live tail", events: join(restated, step("t3", join(call("tc_t3", "greet"), result("tc_t3", "ok"))...), finished(agui.Interrupted(asked("ui_2"))))},
		{name: "empty chat", held: []agui.Message{}, events: join(started(), finished(agui.Success()))},
		{name: "stopped", events: join(started(), call("tc_t1", "greet"), result("tc_t1", "stopped"), finished(agui.Cancelled()))},
		{name: "lost in the middle", events: join(started(), &agui.StepStarted{StepName: "turn:t1"}, &agui.TextMessageStart{MessageID: "m"}, &agui.RunError{Message: "lost", Code: "unavailable"})},
		{name: "lost before the start", events: join(&agui.RunError{Message: "lost"})},
		{name: "plan", events: join(started(), &agui.ActivitySnapshot{MessageID: "plan_t1", ActivityType: "oneturn.plan", Content: map[string]any{"steps": []any{}}},
			call("tc_t1_a", "a"), call("tc_t1_b", "b"), result("tc_t1_b", "2"), result("tc_t1_a", "1"), finished(agui.Success()))},
		{name: "interleaved", events: join(started(), &agui.TextMessageStart{MessageID: "m"}, &agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "a"},
			&agui.ToolCallStart{ToolCallID: "c2", ToolCallName: "b"}, &agui.ToolCallArgs{ToolCallID: "c2", Delta: "{}"}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: " { "},
			&agui.ToolCallEnd{ToolCallID: "c2"}, &agui.TextMessageContent{MessageID: "m", Delta: "x"}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: "}"},
			&agui.ToolCallEnd{ToolCallID: "c1"}, &agui.TextMessageEnd{MessageID: "m"}, &agui.Custom{Name: "oneturn.x"}, &agui.Raw{}, finished(nil))},
		{name: "reasoning", events: join(started(), &agui.ReasoningStart{MessageID: "r"}, &agui.ReasoningMessageStart{MessageID: "r"},
			&agui.ReasoningMessageContent{MessageID: "r", Delta: "hm"}, &agui.ReasoningEncryptedValue{Subtype: "message", EntityID: "r", EncryptedValue: "x"},
			&agui.ReasoningMessageEnd{MessageID: "r"}, &agui.ReasoningEnd{MessageID: "r"}, finished(nil))},
	}
}
