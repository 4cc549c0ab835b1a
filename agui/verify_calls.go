package agui

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Rules about calls: the arguments are one JSON object, a call belongs to the subagent of its message, and has one result.

func (v *Verifier) callStart(e *ToolCallStart) error {
	if err := needed("toolCallName", e.ToolCallName); err != nil {
		return err
	}
	call := entity{kind: aCall, id: e.ToolCallID}
	if err := v.fresh(call, aCall); err != nil {
		return err
	}
	parent := e.ParentMessageID
	if parent == "" {
		parent = e.ToolCallID // clients create a message with this id
	}
	known, joins := v.has(aMessage, parent), v.has(aParent, parent)
	if known && (!joins || e.ParentMessageID == "") {
		return fmt.Errorf("message %.100q cannot have the call, so that clients add another message with its id: use another parentMessageId or toolCallId", parent)
	}
	by := v.of(e.SubagentRunID)
	if of := v.seen[v.hash(aMessage, parent)]; known && of != anyOwner {
		if err := v.agrees(aMessage, parent, e.SubagentRunID); err != nil {
			return err
		}
		by = of
	}
	if err := v.start(call, aCall, e.SubagentRunID); err != nil {
		return err
	}
	v.open[call] = &pending{}
	v.seen[v.hash(aCall, e.ToolCallID)] = by
	if known {
		return nil
	}
	return errors.Join(v.add(aMessage, parent, anyOwner), v.add(aParent, parent, 0))
}

func (v *Verifier) callArgs(id, delta, tag string) error {
	call := entity{kind: aCall, id: id}
	if err := v.within(call, tag); err != nil {
		return err
	}
	if v.held+len(delta) > MaxEvent {
		return fmt.Errorf("arguments of open calls have over %d bytes: close calls, or send references to the data", MaxEvent)
	}
	v.held += len(delta)
	p := v.open[call]
	switch {
	case p.more != nil:
		p.more = append(p.more, delta...)
	case p.first == "":
		p.first = delta
	default:
		p.more = append(append(make([]byte, 0, 2*(len(p.first)+len(delta))), p.first...), delta...)
		p.first = ""
	}
	return nil
}

func (v *Verifier) callEnd(id, tag string) error {
	call := entity{kind: aCall, id: id}
	if err := v.within(call, tag); err != nil {
		return err
	}
	p := v.open[call]
	args := p.more
	if args == nil {
		args = []byte(p.first)
	}
	if !strings.HasPrefix(strings.TrimLeft(string(args[:min(len(args), 100)]), " \t\r\n"), "{") || !stdjson.Valid(args) {
		return fmt.Errorf("the arguments of call %.100q are not one JSON object: send at least {} in TOOL_CALL_ARGS", id)
	}
	v.held -= len(args)
	delete(v.open, call)
	return nil
}

func (v *Verifier) result(e *ToolCallResult) error {
	if err := errors.Join(needed("messageId", e.MessageID), needed("toolCallId", e.ToolCallID)); err != nil {
		return err
	}
	if v.has(aResult, e.ToolCallID) {
		return fmt.Errorf("call %.100q has a result, which clients would show twice", e.ToolCallID)
	}
	if v.has(aMessage, e.MessageID) {
		return fmt.Errorf("the client has message %.100q already: use another id for the result", e.MessageID)
	}
	by := v.of(e.SubagentRunID)
	if err := v.add(aMessage, e.MessageID, by); err != nil {
		return err
	}
	return v.add(aResult, e.ToolCallID, by)
}
