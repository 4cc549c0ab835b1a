package agui_test

import (
	"encoding/json"

	"github.com/oneturn/oneturn/agui"
)

// samples returns every event twice: with its required fields only, and with all.
func samples() []agui.Event {
	base := agui.Base{Timestamp: 1790000000123, Metadata: map[string]any{"vendor": nil}, RawEvent: map[string]any{"a": 1}}
	usage := []agui.TokenUsage{{
		Provider: "p", Model: "m", InputTokens: 1, OutputTokens: 2, TotalTokens: 3, ReasoningTokens: 4, CachedInputTokens: 5, CacheWriteInputTokens: 6,
	}}
	interrupt := agui.Interrupt{
		ID: "int_1", Reason: agui.ReasonInputRequired, Message: "Key?", ToolCallID: "c1", ResponseSchema: json.RawMessage(`{"type":"object"}`),
		ExpiresAt: "2030-01-01T00:00:00Z", Metadata: map[string]any{"_ui": map[string]any{"display": "inline"}}, SubagentRunID: "s1",
	}
	no := false
	patch := agui.Patch{
		agui.Add("/a", nil), agui.Replace("/b", map[string]any{}), agui.Remove("/c"), agui.Move("/d", "/e"),
		{Op: "copy", From: "", Path: "/f"},
		{Op: "test", Path: "", Value: false},
	}
	return []agui.Event{
		&agui.RunStarted{},
		&agui.RunStarted{ThreadID: "t", RunID: "r", ProtocolVersion: "1.0", ParentRunID: "q", Input: fullInput(), Base: base},
		&agui.RunFinished{},
		&agui.RunFinished{ThreadID: "t", RunID: "r", Result: map[string]any{"status": 1}, Outcome: agui.Success("c1"), Usage: usage, Base: base},
		&agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: agui.Success()},
		&agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: agui.Interrupted(interrupt, agui.Interrupt{ID: "i", Reason: "oneturn:choice"})},
		&agui.RunFinished{ThreadID: "t", RunID: "r", Outcome: agui.Cancelled()},
		&agui.RunError{},
		&agui.RunError{Message: "lost", Code: "unavailable", Usage: usage, Base: base},
		&agui.StepStarted{},
		&agui.StepStarted{StepName: "turn:1", SubagentRunID: "s1", Base: base},
		&agui.StepFinished{},
		&agui.StepFinished{StepName: "turn:1", SubagentRunID: "s1", Base: base},
		&agui.TextMessageStart{},
		&agui.TextMessageStart{MessageID: "m", Role: agui.RoleAssistant, Name: "Planner", SubagentRunID: "s1", Base: base},
		&agui.TextMessageContent{},
		&agui.TextMessageContent{MessageID: "m", Delta: "line\r\n\u2028</script>\x00", SubagentRunID: "s1", Base: base},
		&agui.TextMessageEnd{},
		&agui.TextMessageEnd{MessageID: "m", SubagentRunID: "s1", Base: base},
		&agui.TextMessageChunk{},
		&agui.TextMessageChunk{MessageID: "m", Role: agui.RoleUser, Delta: "d", Name: "n", SubagentRunID: "s1", Base: base},
		&agui.ToolCallStart{},
		&agui.ToolCallStart{ToolCallID: "c", ToolCallName: "greet", ParentMessageID: "m", SubagentRunID: "s1", Base: base},
		&agui.ToolCallArgs{},
		&agui.ToolCallArgs{ToolCallID: "c", Delta: "{}", SubagentRunID: "s1", Base: base},
		&agui.ToolCallEnd{},
		&agui.ToolCallEnd{ToolCallID: "c", SubagentRunID: "s1", Base: base},
		&agui.ToolCallChunk{},
		&agui.ToolCallChunk{ToolCallID: "c", ToolCallName: "greet", ParentMessageID: "m", Delta: "{}", SubagentRunID: "s1", Base: base},
		&agui.ToolCallResult{},
		&agui.ToolCallResult{MessageID: "res_c", ToolCallID: "c", Content: agui.Text("ok"), SubagentRunID: "s1", Base: base},
		&agui.ToolCallResult{MessageID: "res_c", ToolCallID: "c", Content: agui.Content{Parts: allParts()}},
		&agui.ToolCallResult{MessageID: "res_c", ToolCallID: "c", Content: agui.Content{Parts: []agui.ContentPart{}}},
		&agui.StateSnapshot{},
		&agui.StateSnapshot{Snapshot: map[string]any{"n": json.Number("12345678901234567890")}, SubagentRunID: "s1", Base: base},
		&agui.StateDelta{},
		&agui.StateDelta{Delta: patch, SubagentRunID: "s1", Base: base},
		&agui.MessagesSnapshot{},
		&agui.MessagesSnapshot{Messages: allMessages(), Base: base},
		&agui.ActivitySnapshot{},
		&agui.ActivitySnapshot{MessageID: "act_c", ActivityType: "progress", Content: map[string]any{"n": 1}, Replace: &no, SubagentRunID: "s1", Base: base},
		&agui.ActivityDelta{},
		&agui.ActivityDelta{MessageID: "act_c", ActivityType: "progress", Patch: patch, SubagentRunID: "s1", Base: base},
		&agui.ReasoningStart{},
		&agui.ReasoningStart{MessageID: "m", SubagentRunID: "s1", Base: base},
		&agui.ReasoningMessageStart{},
		&agui.ReasoningMessageStart{MessageID: "m", SubagentRunID: "s1", Base: base},
		&agui.ReasoningMessageContent{},
		&agui.ReasoningMessageContent{MessageID: "m", Delta: "d", SubagentRunID: "s1", Base: base},
		&agui.ReasoningMessageEnd{},
		&agui.ReasoningMessageEnd{MessageID: "m", SubagentRunID: "s1", Base: base},
		&agui.ReasoningMessageChunk{},
		&agui.ReasoningMessageChunk{MessageID: "m", Delta: "d", SubagentRunID: "s1", Base: base},
		&agui.ReasoningEnd{},
		&agui.ReasoningEnd{MessageID: "m", SubagentRunID: "s1", Base: base},
		&agui.ReasoningEncryptedValue{Subtype: "message"},
		&agui.ReasoningEncryptedValue{Subtype: "tool-call", EntityID: "c", EncryptedValue: "x", SubagentRunID: "s1", Base: base},
		&agui.SubagentStarted{},
		&agui.SubagentStarted{SubagentRunID: "s1", Name: "n", Description: "d", ParentSubagentRunID: "s0", ParentToolCallID: "c", ParentMessageID: "m", Base: base},
		&agui.SubagentFinished{},
		&agui.SubagentFinished{SubagentRunID: "s1", Result: "done", Outcome: &agui.SubagentOutcome{Type: agui.OutcomeSuspended, InterruptIDs: []string{"i"}}, Base: base},
		&agui.SubagentFinished{SubagentRunID: "s1", Outcome: &agui.SubagentOutcome{Type: agui.OutcomeSuccess}},
		&agui.SubagentError{},
		&agui.SubagentError{SubagentRunID: "s1", Message: "m", Code: "c", Base: base},
		&agui.Raw{},
		&agui.Raw{Event: []any{1}, Source: "openai", SubagentRunID: "s1", Base: base},
		&agui.Custom{},
		&agui.Custom{Name: "oneturn.x", Value: true, SubagentRunID: "s1", Base: base},
	}
}

func allParts() []agui.ContentPart {
	text := agui.TextPart("text")
	text.ID, text.Metadata = "p1", json.RawMessage(`{"a":1}`)
	return []agui.ContentPart{
		text,
		{Type: agui.PartImage, Source: &agui.Source{Type: agui.SourceData, Value: "aGk=", MimeType: "image/png"}},
		{Type: agui.PartAudio, Source: &agui.Source{Type: agui.SourceURL, Value: "https://example.com/a"}},
		{Type: agui.PartVideo, Source: &agui.Source{Type: agui.SourceFile, Value: "file-1", Provider: "openai"}},
		{Type: agui.PartDocument, Source: &agui.Source{Type: agui.SourceFile, Value: "file-2", MimeType: "application/pdf"}},
	}
}

// allMessages returns a message of each role, with all fields that the role has and some that it has not.
func allMessages() []agui.Message {
	metadata := json.RawMessage(`{"k":null}`)
	call := agui.Call("c1", "greet", `{"name":"Ada"}`)
	call.EncryptedValue, call.Metadata = "x", metadata
	messages := []agui.Message{
		agui.UserMessage("u1", "hello"),
		{ID: "u2", Role: agui.RoleUser, Content: agui.Content{Parts: allParts()}},
		agui.AssistantMessage("a1", "hi", call),
		{ID: "a2", Role: agui.RoleAssistant, ToolCalls: []agui.ToolCall{{ID: "c2", Function: agui.FunctionCall{Name: "f"}}}},
		agui.ToolMessage("res_c1", "c1", "ok"),
		{ID: "res_c2", Role: agui.RoleTool, ToolCallID: "c2", Content: agui.Content{Parts: allParts()}, Error: "failed"},
		{ID: "s", Role: agui.RoleSystem},
		{ID: "d", Role: agui.RoleDeveloper, Content: agui.Text("x")},
		{ID: "r", Role: agui.RoleReasoning},
		{ID: "v", Role: agui.RoleActivity, ActivityType: "plan", Activity: json.RawMessage(`{"steps":[]}`)},
		{ID: "w", Role: agui.RoleActivity, ActivityType: "empty"},
	}
	for i := range messages {
		messages[i].Name, messages[i].EncryptedValue, messages[i].SubagentRunID, messages[i].Metadata = "n", "e", "s1", metadata
	}
	return messages
}

func fullInput() *agui.RunAgentInput {
	return &agui.RunAgentInput{
		ThreadID: "t", RunID: "r", ProtocolVersion: "1.0", ParentRunID: "q", Messages: allMessages(), State: json.RawMessage(`{"a":1.50}`),
		Tools:          []agui.Tool{{Name: "pick", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`), Metadata: json.RawMessage(`{}`)}},
		Context:        []agui.Context{{Description: "d", Value: "v"}},
		ForwardedProps: json.RawMessage(`{"x":[]}`),
		Resume: []agui.ResumeEntry{
			{InterruptID: "int_1", Status: agui.ResumeResolved, Payload: json.RawMessage(`null`), Metadata: json.RawMessage(`{}`)},
			{InterruptID: "int_2", Status: agui.ResumeCancelled},
		},
	}
}
