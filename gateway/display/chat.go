package display

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
)

// MaxBytes bounds a snapshot of messages: an AG-UI client accepts events of up to 10 MiB. Of a longer chat the newest messages are
// displayed.
const MaxBytes = 6 << 20

// maxTurns bounds the turns in the state: a client sends its state back with every run.
const maxTurns = 100

// Chat is what is displayed of a chat. Apply its events in the order of the journal. It is not safe for concurrent use.
type Chat struct {
	entries []*entry
	size    int               // of the entries
	idBytes int               // of the ids of users' messages
	byID    map[string]*entry // calls by tool_call_id, messages by the key of their id
	users   map[string]uint64 // sequences of users' messages, also of those that are not displayed

	asking   []*entry // questions that are open
	turns    []*turn  // the newest, in the order in which they were claimed
	running  map[string]*turn
	plans    map[string]*plan
	context  map[string]json.RawMessage
	speaker  string // the agent that speaks next
	waiting  string // id of the newest message of a user, if it has neither a turn nor a reply yet
	since    time.Time
	sequence uint64
}

// turn is the state of a turn.
type turn struct {
	id    string // tool_call_id of its call
	agent string
	tool  string
	phase Phase
}

// Phase is the phase of a turn.
type Phase string

// The phases of a turn.
const (
	Running  Phase = "running"
	Awaiting Phase = "awaiting" // it has an open question
	Done     Phase = "done"
	Failed   Phase = "error"
)

// New returns a chat without events.
func New() *Chat {
	return &Chat{byID: map[string]*entry{}, users: map[string]uint64{}, running: map[string]*turn{}, plans: map[string]*plan{}, context: map[string]json.RawMessage{}}
}

// Empty reports whether there is nothing to display.
func (c *Chat) Empty() bool { return c.sequence == 0 }

// Sequence is the sequence of the newest event that was applied.
func (c *Chat) Sequence() uint64 { return c.sequence }

// Busy reports whether a turn runs that waits for no person.
func (c *Chat) Busy() bool {
	for _, t := range c.running {
		if t.phase == Running {
			return true
		}
	}
	return false
}

// OpenTurns returns the ids of the calls of the turns that have no response, in the order of their claims.
func (c *Chat) OpenTurns() []string {
	var ids []string
	for _, t := range c.turns {
		if c.running[t.id] == t {
			ids = append(ids, t.id)
		}
	}
	return ids
}

// Waiting returns the id of the newest message of a user, if it waits for a turn or a reply, and since when.
func (c *Chat) Waiting() (message string, since time.Time) { return c.waiting, c.since }

// Stored returns the sequence of a user's message, 0 if it is not stored.
func (c *Chat) Stored(messageID string) uint64 { return c.users[messageID] }

// Displays reports whether a user's message is displayed as a client has it.
func (c *Chat) Displays(m *agui.Message) bool {
	e := c.byID[(&message{id: m.ID, user: true}).key()]
	if e == nil || e.message == nil {
		return false
	}
	displayed := e.message.asText()
	return bytes.Equal(events.JSONOf(displayed.Content), events.JSONOf(m.Content))
}

// Apply applies an event with its sequence, 0 for one that is not stored, and returns what has changed. Nil is an event that
// cannot be read: it changes nothing.
func (c *Chat) Apply(sequence uint64, e *Event) []Change {
	c.sequence = max(c.sequence, sequence)
	if e == nil {
		return nil
	}
	switch e.Kind {
	case events.KindText, events.KindUserMessage:
		return c.text(sequence, e)
	case events.KindToolCall:
		return c.called(sequence, e)
	case events.KindToolCallAck:
		return c.decided(e, ended(&e.event))
	case events.KindToolCallDismiss:
		return c.dismissed(e)
	case events.KindToolResponse:
		return c.responded(e)
	case events.KindPlanStarted:
		return c.planned(e)
	case events.KindContextUpdate:
		c.set(e.Variable, e.Value)
		return []Change{{kind: variableSet, name: e.Variable}}
	case events.KindHandoff:
		return c.handedOff(e)
	case events.KindToolProgress:
		// It is not stored, so it may come before its call or after its end.
		if of := c.byID[e.ToolCallID]; of != nil && of.call != nil && of.call.result == "" {
			return []Change{{kind: progressed, event: e}}
		}
	case events.KindStructuredOutput:
		return []Change{{kind: outputStored, event: e}}
	}
	return nil
}

// Bounds of the context variables in the state.
const (
	maxVariables = 100
	maxValue     = 16 << 10 // bytes
)

// set sets a context variable. Of a large value only its size is displayed.
func (c *Chat) set(name string, value json.RawMessage) {
	if len(value) > maxValue {
		value = events.JSONOf(map[string]any{"$omitted": true, "size": len(value)})
	}
	if _, known := c.context[name]; known || len(c.context) < maxVariables {
		c.context[name] = value
	}
}

func (c *Chat) text(sequence uint64, e *Event) []Change {
	if e.Kind == events.KindUserMessage {
		if _, known := c.users[e.MessageID]; !known {
			c.idBytes += len(e.MessageID)
		}
		c.users[e.MessageID] = sequence
		if len(c.running) == 0 { // else it is an answer, or meant for the agent that works
			c.waiting, c.since = e.MessageID, e.at
		}
	} else {
		c.waiting = ""
	}
	if e.text == nil || c.byID[e.key] != nil {
		return nil
	}
	c.add(e.key, e.text)
	return []Change{{kind: messageAdded, event: e}}
}

func (c *Chat) called(sequence uint64, e *Event) []Change {
	if c.byID[e.ToolCallID] != nil {
		return nil
	}
	copied := *e.call
	added := &copied
	added.sequence = sequence
	c.add(added.id, &entry{call: added})
	changes := []Change{{kind: callAdded, call: added, event: e}}
	switch {
	case added.question != nil:
		c.asking = append(c.asking, c.byID[added.id])
		changes = append(changes, c.phase(added.turn)...)
		changes = append(changes, Change{kind: openChanged})
	case added.of != "": // a surface
		changes = append(changes, Change{kind: callEnded, call: added})
	case e.Step != "":
		changes = append(changes, c.step(added.turn, e.Step, "running")...)
	default:
		c.waiting = ""
		changes = append(changes, c.started(&turn{id: added.id, agent: e.Agent, tool: e.ToolName, phase: Running}))
	}
	return changes
}

// started adds a turn. It returns the change of the state: a turn that is no longer displayed is removed.
func (c *Chat) started(t *turn) Change {
	c.running[t.id] = t
	c.turns = append(c.turns, t)
	change := Change{kind: turnStarted, turn: t}
	if len(c.turns) > maxTurns {
		if at := slices.IndexFunc(c.turns, func(t *turn) bool { return c.running[t.id] != t }); at >= 0 {
			change.name = c.turns[at].id
			c.turns = slices.Delete(c.turns, at, at+1)
		}
	}
	return change
}

// decided ends a question.
func (c *Chat) decided(e *Event, result string) []Change {
	entry := c.byID[e.ToolCallID]
	if entry == nil || entry.call == nil || !entry.call.open() {
		return nil
	}
	return append(c.end(entry, result, false), c.phase(entry.call.turn)...)
}

// dismissed ends the display of a call. One that is not known was displayed before the chat was continued.
func (c *Chat) dismissed(e *Event) []Change {
	entry := c.byID[e.ToolCallID]
	if entry == nil {
		return []Change{{kind: callDismissed, call: &call{id: e.ToolCallID}}}
	}
	if entry.call == nil {
		return nil
	}
	if entry.call.open() {
		return append(c.end(entry, `{"status":"dismissed"}`, false), c.phase(entry.call.turn)...)
	}
	c.remove(entry)
	return []Change{{kind: callDismissed, call: entry.call}}
}

func (c *Chat) responded(e *Event) []Change {
	changes := c.closeQuestions(e)
	if entry := c.byID[e.ToolCallID]; entry != nil && entry.call != nil && entry.call.result == "" {
		ended := c.end(entry, e.result, e.failed)
		ended[0].event = e
		changes = append(changes, ended...)
	}
	if e.Step != "" {
		state := "done"
		if e.failed {
			state = "error"
		}
		return append(changes, c.step(e.turnID(), e.Step, state)...)
	}
	if t := c.running[e.ToolCallID]; t != nil {
		if t.phase = Done; e.failed {
			t.phase = Failed
		}
		delete(c.running, t.id)
		delete(c.plans, t.id)
		changes = append(changes, Change{kind: phaseChanged, turn: t})
	}
	return changes
}

// closeQuestions ends the questions that are open when their turn or step ends.
func (c *Chat) closeQuestions(e *Event) []Change {
	var changes []Change
	for _, entry := range slices.Clone(c.asking) {
		if q := entry.call; q.of == e.ToolCallID || e.Step == "" && q.turn == e.ToolCallID {
			changes = append(changes, c.end(entry, `{"status":"closed"}`, true)...)
		}
	}
	return changes
}

func (c *Chat) handedOff(e *Event) []Change {
	next := ""
	if e.To != nil {
		next = *e.To
	}
	if next == c.speaker {
		return nil
	}
	c.speaker = next
	return []Change{{kind: speakerChanged}}
}

// phase sets the phase of an open turn by its open questions.
func (c *Chat) phase(id string) []Change {
	t := c.running[id]
	if t == nil {
		return nil
	}
	phase := Running
	for _, q := range c.asking {
		if q.call.turn == id {
			phase = Awaiting
		}
	}
	if t.phase == phase {
		return nil
	}
	t.phase = phase
	return []Change{{kind: phaseChanged, turn: t}}
}

// end gives a call its result.
func (c *Chat) end(e *entry, result string, failed bool) []Change {
	wasOpen := e.call.open()
	c.size -= e.size()
	e.call.result, e.call.failed = result, failed
	c.size += e.size()
	changes := []Change{{kind: callEnded, call: e.call}}
	if wasOpen {
		c.asking = slices.DeleteFunc(c.asking, func(q *entry) bool { return q == e })
		changes = append(changes, Change{kind: openChanged})
	}
	return changes
}
