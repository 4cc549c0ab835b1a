package agui

import (
	"errors"
	"fmt"
)

// Rules about chunks: the first chunk has what a start needs, others may omit it but not change it, and the next event that is
// not about the same message or call closes it. Clients assemble the chunks of each subagent separately, which this does not
// follow: subagents send starts, contents and ends.

// endChunk closes what the last chunks were part of, unless e continues it or does not touch it.
func (v *Verifier) endChunk(e Event) error {
	if v.chunk == nil || v.continues(e) {
		return nil
	}
	var err error
	switch first := v.chunk.(type) {
	case *TextMessageChunk:
		err = v.close(entity{kind: aText, id: first.MessageID}, "")
	case *ReasoningMessageChunk:
		err = v.close(entity{kind: aReasoning, id: first.MessageID}, "")
	case *ToolCallChunk:
		err = v.callEnd(first.ToolCallID, "")
	default:
	}
	if err == nil { // else more chunks may complete it
		v.chunk = nil
	}
	return err
}

// continues reports whether an event leaves the chunks open.
func (v *Verifier) continues(e Event) bool {
	switch e := e.(type) {
	case *TextMessageChunk:
		first, ok := v.chunk.(*TextMessageChunk)
		return ok && (e.MessageID == "" || e.MessageID == first.MessageID)
	case *ReasoningMessageChunk:
		first, ok := v.chunk.(*ReasoningMessageChunk)
		return ok && (e.MessageID == "" || e.MessageID == first.MessageID)
	case *ToolCallChunk:
		first, ok := v.chunk.(*ToolCallChunk)
		return ok && (e.ToolCallID == "" || e.ToolCallID == first.ToolCallID)
	case *Raw, *ActivitySnapshot, *ActivityDelta, *ReasoningEncryptedValue, *SubagentStarted, *RunError:
		return true
	default:
		return false
	}
}

var errTagged = errors.New("a chunk of a subagent: send a start, contents and an end")

// changed is the error of a chunk that has another value than the first one.
func changed(field, first, now string) error {
	if now != "" && now != first {
		return fmt.Errorf("%s %.100q differs from the first chunk's: omit it", field, now)
	}
	return nil
}

func (v *Verifier) textChunk(e *TextMessageChunk) error {
	if e.SubagentRunID != "" {
		return errTagged
	}
	if first, ok := v.chunk.(*TextMessageChunk); ok {
		role := first.Role
		if role == "" {
			role = RoleAssistant
		}
		return errors.Join(changed("role", string(role), string(e.Role)), changed("name", first.Name, e.Name))
	}
	if err := v.textStart(&TextMessageStart{MessageID: e.MessageID, Role: e.Role}); err != nil {
		return fmt.Errorf("first chunk: %w", err)
	}
	v.chunk = &TextMessageChunk{MessageID: e.MessageID, Role: e.Role, Name: e.Name}
	return nil
}

func (v *Verifier) reasoningChunk(e *ReasoningMessageChunk) error {
	if e.SubagentRunID != "" {
		return errTagged
	}
	if _, ok := v.chunk.(*ReasoningMessageChunk); ok {
		return nil
	}
	if err := v.reasoningStart(entity{kind: aReasoning, id: e.MessageID}, aMessage, ""); err != nil {
		return fmt.Errorf("first chunk: %w", err)
	}
	v.chunk = &ReasoningMessageChunk{MessageID: e.MessageID}
	return nil
}

func (v *Verifier) callChunk(e *ToolCallChunk) error {
	if e.SubagentRunID != "" {
		return errTagged
	}
	first, ok := v.chunk.(*ToolCallChunk)
	if !ok {
		start := &ToolCallStart{ToolCallID: e.ToolCallID, ToolCallName: e.ToolCallName, ParentMessageID: e.ParentMessageID}
		if err := v.callStart(start); err != nil {
			return fmt.Errorf("first chunk: %w", err)
		}
		first = &ToolCallChunk{ToolCallID: e.ToolCallID, ToolCallName: e.ToolCallName, ParentMessageID: e.ParentMessageID}
		v.chunk = first
	}
	if err := errors.Join(changed("toolCallName", first.ToolCallName, e.ToolCallName), changed("parentMessageId", first.ParentMessageID, e.ParentMessageID)); err != nil {
		return err
	}
	return v.callArgs(first.ToolCallID, e.Delta, "")
}
