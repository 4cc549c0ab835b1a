package agui

import (
	"errors"
	"fmt"
	"hash/maphash"
)

// The ids of a run: an entity is opened once, receives what belongs to it while it is open, and is closed once. What a
// client has is never sent again, since clients append to it. What belongs to one subagent is not continued by another.

var errOpen = fmt.Errorf("%d texts, calls, steps and subagents are open: close some first", maxOpen)

func needed(field, value string) error {
	if value == "" {
		return errors.New(field + " is empty: send an id or a name")
	}
	return nil
}

func (v *Verifier) hash(k kind, id string) uint64 {
	return maphash.String(v.seed, id) + uint64(k)
}

// of returns the owner that a tag names.
func (v *Verifier) of(tag string) owner {
	if tag == "" {
		return 0
	}
	return owner(v.hash(aSubagent, tag) | 1)
}

func (v *Verifier) has(k kind, id string) bool {
	_, ok := v.seen[v.hash(k, id)]
	return ok
}

// add records that the client has an entity. A bound is an error before anything is recorded.
func (v *Verifier) add(k kind, id string, by owner) error {
	if len(v.seen) >= v.limit {
		return fmt.Errorf("more than %d ids in a run: end it, and restate the conversation in the next", v.limit)
	}
	v.seen[v.hash(k, id)] = by
	return nil
}

// start opens an entity that the client may not have, under the kind as.
func (v *Verifier) start(e entity, as kind, tag string) error {
	if err := v.fresh(e, as); err != nil {
		return err
	}
	if len(v.open) >= maxOpen {
		return errOpen
	}
	if err := v.add(as, e.id, v.of(tag)); err != nil {
		return err
	}
	v.open[e] = nil
	return nil
}

// fresh checks that an entity can be opened.
func (v *Verifier) fresh(e entity, as kind) error {
	if e.id == "" {
		return needed("the id of the "+e.kind.String(), e.id)
	}
	if _, open := v.open[e]; open {
		return fmt.Errorf("%s %.100q is open already: close it, or use another id", e.kind, e.id)
	}
	if v.has(as, e.id) {
		return fmt.Errorf("the client has the %s %.100q already and would append to it: restate it in a MESSAGES_SNAPSHOT, or use another id", e.kind, e.id)
	}
	return nil
}

// within checks what belongs to an open entity.
func (v *Verifier) within(e entity, tag string) error {
	if _, open := v.open[e]; !open {
		return fmt.Errorf("%s %.100q is not open: start it first", e.kind, e.id)
	}
	as := e.kind
	switch as {
	case aText:
		as = aMessage
	case aReasoning, aSpan:
		as = aThought
	case aStep, aSubagent:
		return nil
	default:
	}
	return v.agrees(as, e.id, tag)
}

// agrees checks that an event with a tag may continue what has this id.
func (v *Verifier) agrees(k kind, id, tag string) error {
	if tag == "" {
		return nil
	}
	if by, known := v.seen[v.hash(k, id)]; known && by != anyOwner && by != v.of(tag) {
		return fmt.Errorf("%s %.100q does not belong to subagent %.100q: use the subagentRunId of its start", k, id, tag)
	}
	return nil
}

// close ends an open entity.
func (v *Verifier) close(e entity, tag string) error {
	if err := v.within(e, tag); err != nil {
		return err
	}
	delete(v.open, e)
	return nil
}
