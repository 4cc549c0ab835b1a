package display

import (
	"encoding/json"
	"maps"
	"slices"
)

// entry is a message or a call.
type entry struct {
	message *message
	call    *call
}

func (e *entry) size() int {
	if e.message != nil {
		return e.message.size()
	}
	return e.call.size()
}

// largeArguments are arguments of open calls that are left out if nothing else makes room, in bytes.
const largeArguments = 4 << 10

// add appends an entry, and removes the oldest ones that no longer fit, except calls that are open.
func (c *Chat) add(id string, e *entry) {
	c.byID[id] = e
	c.entries = append(c.entries, e)
	c.size += e.size()
	for at := 0; c.size > MaxBytes && at < len(c.entries)-1; {
		old := c.entries[at]
		if old.call != nil && old.call.result == "" {
			at++
			continue
		}
		c.size -= old.size()
		delete(c.byID, old.key())
		c.entries = slices.Delete(c.entries, at, at+1)
	}
	for _, open := range c.entries {
		if c.size <= MaxBytes {
			return
		}
		if open.call != nil && len(open.call.args) > largeArguments {
			c.size -= open.size()
			open.call.args = withMember(json.RawMessage(`{"$omitted":true}`), "_ui", open.call.ui)
			c.size += open.size()
		}
	}
}

// remove removes an entry: no snapshot has it any more.
func (c *Chat) remove(e *entry) {
	c.size -= e.size()
	delete(c.byID, e.key())
	c.entries = slices.DeleteFunc(c.entries, func(other *entry) bool { return other == e })
}

func (e *entry) key() string {
	if e.message != nil {
		return e.message.key()
	}
	return e.call.id
}

// Size is about how many bytes the chat takes in memory, and in a snapshot.
func (c *Chat) Size() int { return c.size + c.idBytes }

// Continued returns a chat that continues from here: it has what is open, and nothing that only a snapshot needs. The two share
// nothing that changes.
func (c *Chat) Continued() *Chat {
	next := New()
	for _, e := range c.entries {
		if e.call == nil || e.call.result != "" {
			continue
		}
		open := *e.call
		next.byID[open.id] = &entry{call: &open}
		next.entries = append(next.entries, next.byID[open.id])
		next.size += e.size()
	}
	for _, e := range c.asking {
		next.asking = append(next.asking, next.byID[e.call.id])
	}
	for _, t := range c.turns {
		copied := *t
		next.turns = append(next.turns, &copied)
		if c.running[t.id] == t {
			next.running[t.id] = &copied
		}
	}
	for id, p := range c.plans {
		next.plans[id] = &plan{id: p.id, steps: slices.Clone(p.steps), at: p.at}
	}
	next.context, next.speaker, next.sequence = maps.Clone(c.context), c.speaker, c.sequence
	if next.waiting, next.since = c.waiting, c.since; c.waiting != "" {
		next.users[c.waiting] = c.users[c.waiting]
	}
	return next
}
