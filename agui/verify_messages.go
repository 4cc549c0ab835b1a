package agui

import (
	"errors"
	"fmt"
)

// Rules about texts, reasoning and what restates them: the messages of a snapshot are distinct, and what is open is among them.

func (v *Verifier) textStart(e *TextMessageStart) error {
	if err := streamable(e.Role); err != nil {
		return err
	}
	if err := v.start(entity{kind: aText, id: e.MessageID}, aMessage, e.SubagentRunID); err != nil {
		return err
	}
	if e.Role != "" && e.Role != RoleAssistant {
		return nil
	}
	return v.add(aParent, e.MessageID, 0)
}

// streamable reports an error for roles that texts cannot have.
func streamable(r Role) error {
	switch r {
	case "", RoleAssistant, RoleUser, RoleSystem, RoleDeveloper:
		return nil
	default:
		return fmt.Errorf("role %.20q cannot be streamed as a text: use assistant, user, system or developer", r)
	}
}

func (v *Verifier) encryptedValue(e *ReasoningEncryptedValue) error {
	if err := needed("entityId", e.EntityID); err != nil {
		return err
	}
	switch e.Subtype {
	case "tool-call":
		return v.agrees(aCall, e.EntityID, e.SubagentRunID)
	case "message":
		if by, known := v.seen[v.hash(aMessage, e.EntityID)]; known && by != anyOwner {
			return v.agrees(aMessage, e.EntityID, e.SubagentRunID)
		}
		return v.agrees(aThought, e.EntityID, e.SubagentRunID)
	default:
		return fmt.Errorf("unknown subtype %.20q: use tool-call or message", e.Subtype)
	}
}

// reasoningStart opens a span or a reasoning message.
func (v *Verifier) reasoningStart(e entity, as kind, tag string) error {
	if err := v.agrees(aThought, e.id, tag); err != nil {
		return err
	}
	if err := v.start(e, as, tag); err != nil {
		return err
	}
	v.seen[v.hash(as, e.id)] = anyOwner
	if v.has(aThought, e.id) {
		return nil
	}
	return v.add(aThought, e.id, v.of(tag))
}

// history records messages that the client has. They may be anything that a client sends.
func (v *Verifier) history(messages []Message) {
	for _, m := range messages {
		_ = v.addMessage(m) // beyond the limit of ids the next start is an error
	}
}

// addMessage records a message with its calls, or the call that it answers.
func (v *Verifier) addMessage(m Message) error {
	by := v.of(m.SubagentRunID)
	var err error
	switch {
	case m.Role != RoleReasoning && m.Role != RoleActivity:
		err = v.add(aMessage, m.ID, by)
	case !v.has(aMessage, m.ID):
		err = v.add(aMessage, m.ID, anyOwner)
	}
	for _, call := range m.ToolCalls {
		err = errors.Join(err, v.add(aCall, call.ID, by))
	}
	switch m.Role {
	case RoleAssistant:
		err = errors.Join(err, v.add(aParent, m.ID, 0))
	case RoleTool:
		err = errors.Join(err, v.add(aResult, m.ToolCallID, by))
	case RoleActivity:
		err = errors.Join(err, v.add(anActivity, m.ID, by))
	case RoleReasoning:
		err = errors.Join(err, v.add(aThought, m.ID, by))
	default:
	}
	return err
}

func (v *Verifier) snapshot(e *MessagesSnapshot) error {
	inside := make(map[entity]bool, len(e.Messages))
	for i, m := range e.Messages {
		if err := errors.Join(checkMessage(m, inside), v.sameRole(m)); err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	for open := range v.open {
		if open.kind == aText && !inside[entity{kind: aMessage, id: open.id}] || open.kind == aCall && !inside[entity{kind: aCall, id: open.id}] {
			return fmt.Errorf("the open %s %.100q is not in the snapshot, so that clients drop it: close it first", open.kind, open.id)
		}
	}
	if len(v.seen)+len(inside) > maxSeen {
		return fmt.Errorf("more than %d ids in a run: restate fewer messages", maxSeen)
	}
	v.history(e.Messages)
	return nil
}

// sameRole checks that a message which the client has as an activity or as reasoning stays one, and that no other becomes one.
func (v *Verifier) sameRole(m Message) error {
	by, known := v.seen[v.hash(aMessage, m.ID)]
	if !known {
		return nil
	}
	was := RoleAssistant // or user, tool, …
	switch {
	case v.has(anActivity, m.ID):
		was = RoleActivity
	case by == anyOwner && !v.has(aParent, m.ID):
		was = RoleReasoning
	}
	now := RoleAssistant
	if m.Role == RoleActivity || m.Role == RoleReasoning {
		now = m.Role
	}
	if was != now {
		return fmt.Errorf("message %.100q has another role than before: use another id", m.ID)
	}
	return nil
}

// checkMessage checks a message of a snapshot, and adds its ids to those inside.
func checkMessage(m Message, inside map[entity]bool) error {
	ids := []entity{{kind: aMessage, id: m.ID}}
	switch m.Role {
	case RoleUser, RoleAssistant, RoleSystem, RoleDeveloper, RoleReasoning:
	case RoleTool:
		ids = append(ids, entity{kind: aResult, id: m.ToolCallID})
	case RoleActivity:
		if err := needed("activityType", m.ActivityType); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown role %.20q", m.Role)
	}
	for _, call := range m.ToolCalls {
		if err := needed("the name of call "+call.ID, call.Function.Name); err != nil {
			return err
		}
		ids = append(ids, entity{kind: aCall, id: call.ID})
	}
	for _, id := range ids {
		if err := needed("the id of the "+id.kind.String(), id.id); err != nil {
			return err
		}
		if inside[id] {
			return fmt.Errorf("the %s of %.100q is in the snapshot twice", id.kind, id.id)
		}
		inside[id] = true
	}
	return nil
}

func (v *Verifier) activitySnapshot(e *ActivitySnapshot) error {
	if err := errors.Join(needed("messageId", e.MessageID), needed("activityType", e.ActivityType)); err != nil {
		return err
	}
	known := v.has(anActivity, e.MessageID)
	if !known && v.has(aMessage, e.MessageID) {
		return fmt.Errorf("message %.100q is not an activity: use another id", e.MessageID)
	}
	if known && e.Replace != nil && !*e.Replace {
		return nil // the client keeps what it has
	}
	if err := v.add(aMessage, e.MessageID, anyOwner); err != nil {
		return err
	}
	return v.add(anActivity, e.MessageID, v.of(e.SubagentRunID))
}

func (v *Verifier) activityDelta(e *ActivityDelta) error {
	if !v.has(anActivity, e.MessageID) {
		return fmt.Errorf("the client does not have activity %.100q: send ACTIVITY_SNAPSHOT first", e.MessageID)
	}
	if err := needed("activityType", e.ActivityType); err != nil {
		return err
	}
	if err := v.agrees(anActivity, e.MessageID, e.SubagentRunID); err != nil {
		return err
	}
	return checkPatch(e.Patch)
}

func checkPatch(p Patch) error {
	for i, op := range p {
		if err := op.check(); err != nil {
			return fmt.Errorf("operation %d: %w", i+1, err)
		}
	}
	return nil
}
