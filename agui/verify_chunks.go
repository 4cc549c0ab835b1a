package agui

import "fmt"

// Rules about chunks: the first chunk has what a start needs, others may leave it out, and the next event that is not about
// the same thing closes it.

// endChunk closes what the last chunks were part of, unless e continues it or does not touch it.
func (v *Verifier) endChunk(e Event) error {
	if v.chunk == (entity{}) {
		return nil
	}
	continues := false
	switch e := e.(type) {
	case *TextMessageChunk:
		continues = v.chunk.kind == aText && (e.MessageID == "" || e.MessageID == v.chunk.id)
	case *ReasoningMessageChunk:
		continues = v.chunk.kind == aReasoning && (e.MessageID == "" || e.MessageID == v.chunk.id)
	case *ToolCallChunk:
		continues = v.chunk.kind == aCall && (e.ToolCallID == "" || e.ToolCallID == v.chunk.id)
	case *Raw, *ActivitySnapshot, *ActivityDelta, *ReasoningEncryptedValue, *SubagentStarted, *RunError:
		continues = true
	default:
	}
	if continues {
		return nil
	}
	chunk := v.chunk
	v.chunk = entity{}
	if chunk.kind == aCall {
		return v.callEnd(chunk.id, "")
	}
	return v.close(chunk, "")
}

func (v *Verifier) textChunk(e *TextMessageChunk) error {
	if err := streamable(e.Role); err != nil {
		return err
	}
	return v.messageChunk(entity{kind: aText, id: e.MessageID}, e.SubagentRunID)
}

func (v *Verifier) reasoningChunk(e *ReasoningMessageChunk) error {
	return v.messageChunk(entity{kind: aReasoning, id: e.MessageID}, e.SubagentRunID)
}

// messageChunk starts a message, or continues the current one.
func (v *Verifier) messageChunk(e entity, tag string) error {
	if v.chunk.kind == e.kind {
		return v.within(v.chunk, tag)
	}
	if err := v.start(e, aMessage, tag); err != nil {
		return fmt.Errorf("first chunk: %w", err)
	}
	v.chunk = e
	return nil
}

func (v *Verifier) callChunk(e *ToolCallChunk) error {
	if v.chunk.kind != aCall {
		start := &ToolCallStart{ToolCallID: e.ToolCallID, ToolCallName: e.ToolCallName, ParentMessageID: e.ParentMessageID, SubagentRunID: e.SubagentRunID}
		if err := v.callStart(start); err != nil {
			return fmt.Errorf("first chunk: %w", err)
		}
		v.chunk = entity{kind: aCall, id: e.ToolCallID}
	}
	return v.callArgs(v.chunk.id, e.Delta, e.SubagentRunID)
}
