package variables

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// What a message changes in the variables of its chat, and the speaker after it, are decided inside the compare-and-set of the chat's
// document ([Variables.Apply]): two messages at the same time cannot both judge the value that one of them replaces. The document
// keeps what it has decided for the last messages, so that a worker which continues a message finds the decision, and never
// makes it again.

// maxApplied bounds the messages of which a document has the decision. An older one counts as applied, and changes nothing
// any more. Its handoff, which comes after its turn, is still decided.
const maxApplied = 128

// roomOfMessages bounds the bytes that the decisions take in a document. They have a part of it that variables cannot take: a chat whose
// variables leave no room still decides.
const roomOfMessages = 128 << 10

// messagesName is the entry of a document that holds what was decided for messages.
const messagesName = "\x00messages"

// internal reports whether a name of a document is not a variable.
func internal(name string) bool { return strings.HasPrefix(name, "\x00") }

// messages is the entry [messagesName].
type messages struct {
	Run      string    `json:"run,omitempty"`     // of the message that was applied last
	Speaker  string    `json:"speaker,omitempty"` // the agent that spoke last, users left out
	Sequence int64     `json:"sequence,omitempty"`
	Floor    uint64    `json:"floor,omitempty"` // sequence in the journal up to which decisions were dropped
	Applied  []applied `json:"applied"`
}

// applied is what was decided for a message.
type applied struct {
	Message    string          `json:"message"` // its token
	Seq        uint64          `json:"seq"`     // of its text in the journal
	OutOfOrder bool            `json:"out_of_order,omitempty"`
	Refused    string          `json:"refused,omitempty"` // why it has set nothing
	Updates    []change        `json:"updates,omitempty"`
	Handoff    json.RawMessage `json:"handoff,omitempty"`
}

// change is a variable that was set, by a step of the message: the text or the answer has the steps.
type change struct {
	Variable string `json:"variable"`
	Step     int    `json:"step"`
}

// Message is a message that may change the variables of its chat.
type Message struct {
	ID         string // its token, see [subjects.MessageToken]
	Seq        uint64 // of its text in the journal
	Run        string
	Sequence   int64  // turn_sequence, 0 if the producer sends none
	OutOfOrder bool   // its text states that a later message was applied before
	Answer     bool   // it is the answer to a question, which has no place in the order of the messages
	Agent      string // the agent that speaks, [events.AgentUser] for a user
	Below      Layers
	Steps      []bindings.Step // of the triggers that the message matches
	Changed    bool            // its changes were decided before: if the document does not know that, it changes nothing
	Tool       *Change         // what the tool of its turn has changed, which counts: it is merged in the same step; nil if it has changed nothing
	// Handoff returns the decision on the next speaker, as JSON, given the chat after the message; nil if it cannot be made yet. It is nil
	// for a message whose handoff is not due (yet).
	Handoff func(Chat) json.RawMessage
}

// Chat is what a handoff is decided by.
type Chat struct {
	Values      map[string]any // of the variables
	LastSpeaker string         // the agent that spoke last, before the user if a user has spoken; "" if none did
	OutOfOrder  bool           // a later message was applied before
	Refused     string         // why what the message sets could not be stored: its values are missing; "" if they are not
}

// Applied is what was decided for a message, now or before.
type Applied struct {
	Updates    []bindings.Update
	Handoff    json.RawMessage // nil if it is not decided yet
	OutOfOrder bool            // a later message of its run was applied before, so it changes nothing
	Refused    string          // why what it sets could not be stored: it changes nothing, too; "" otherwise
}

// Apply implements [Store].
func (v *Variables) Apply(ctx context.Context, app, chat string, m Message) (Applied, error) {
	key := subjects.ContextKey(app, chat)
	result, err := v.decide(ctx, key, &m, "")
	if errors.Is(err, idempotency.ErrRefused) && (len(m.Steps) > 0 || m.Handoff != nil) { // the document has room for the message itself
		return v.decide(ctx, key, &m, refusalText(err))
	}
	return result, err
}

// decide stores what is decided for a message. It sets no variables if they were refused before.
func (v *Variables) decide(ctx context.Context, key string, m *Message, refused string) (result Applied, err error) {
	var ofTool edit
	if m.Tool != nil {
		if ofTool, err = m.Tool.edit(); err != nil {
			return Applied{}, err
		}
	}
	err = v.update(ctx, key, func(doc document) (changed bool, err error) {
		if changed, err = v.settle(ctx, doc); err != nil {
			return false, err
		}
		if m.Tool != nil {
			changed = doc.merge(ofTool, m.Tool.Seq) || changed
		}
		state := doc.messages()
		entry, known := state.of(m)
		if !known {
			changed = true
			if entry.OutOfOrder = m.OutOfOrder || state.late(m); !entry.OutOfOrder {
				entry.Refused = refused
			}
			if err := v.begin(key, doc, &state, m, &entry); err != nil {
				return false, err
			}
		}
		if m.Handoff != nil && entry.Handoff == nil {
			values, err := doc.values(m.Below)
			if err != nil {
				return false, v.corrupt(key, err)
			}
			entry.Handoff = m.Handoff(Chat{Values: values, LastSpeaker: state.Speaker, OutOfOrder: entry.OutOfOrder, Refused: cmp.Or(entry.Refused, refused)})
			changed = changed || entry.Handoff != nil
		}
		result = entry.result(m)
		if !changed {
			return false, nil
		}
		if size := entry.size(); size > v.roomOfMessages() {
			return false, store.Refusal(nil, "what was decided for the message takes %d bytes, %d is the most", size, v.roomOfMessages())
		}
		state.put(entry, v.roomOfMessages())
		doc[messagesName] = variable{Messages: &state}
		return true, nil
	})
	return result, err
}

// begin decides what a message changes that the document does not know.
func (v *Variables) begin(key string, doc document, state *messages, m *Message, entry *applied) error {
	switch {
	case m.Changed && len(m.Steps) > 0 && !entry.OutOfOrder:
		entry.Refused = cmp.Or(entry.Refused, "the document of the chat has lost what the message has set")
	case m.Changed, entry.OutOfOrder:
	case entry.Refused != "":
		state.follow(m)
	default:
		before, err := doc.values(m.Below)
		if err != nil {
			return v.corrupt(key, err)
		}
		if err := doc.change(key, m, entry, before); err != nil {
			return err
		}
		state.follow(m)
	}
	return nil
}

// refusalText is the reason of a refusal, for people.
func refusalText(err error) string {
	var e *events.Error
	if errors.As(err, &e) && e.Msg != "" {
		return events.Clip(e.Msg)
	}
	return events.LogText(err)
}

// change sets the variables that a message changes, given their values before it.
func (d document) change(key string, m *Message, entry *applied, before map[string]any) error {
	for _, u := range bindings.Updates(m.Steps, before) {
		if internal(u.Variable) {
			return store.Refusal(nil, "a context variable cannot be called %q", u.Variable)
		}
		data, err := events.AppendJSON(nil, u.Value)
		if err != nil {
			return store.Refusal(err, "context variable %.80q of %s has no JSON form that can be stored", u.Variable, key)
		}
		old := d[u.Variable]
		d[u.Variable] = variable{Value: data, Written: max(old.Written, m.Seq), Base: old.Base}
		step := slices.IndexFunc(m.Steps, func(s bindings.Step) bool { return s.Variable == u.Variable && model.Equal(s.Value, u.Value) })
		entry.Updates = append(entry.Updates, change{Variable: u.Variable, Step: step})
	}
	return nil
}

func (d document) messages() messages {
	if m := d[messagesName].Messages; m != nil {
		state := *m
		state.Applied = slices.Clone(m.Applied)
		return state
	}
	return messages{}
}

// of returns what was decided for a message.
func (s *messages) of(m *Message) (entry applied, known bool) {
	for _, a := range s.Applied {
		if a.Message == m.ID && a.Seq == m.Seq {
			return a, true
		}
	}
	if m.Seq <= s.Floor { // its decision, if there was one, was dropped
		return applied{Message: m.ID, Seq: m.Seq, OutOfOrder: m.OutOfOrder}, true
	}
	return applied{Message: m.ID, Seq: m.Seq}, false
}

// late reports whether a later message of the run was applied before.
func (s *messages) late(m *Message) bool {
	return len(s.Applied) > 0 && !m.Answer && s.Run == m.Run && m.Sequence > 0 && m.Sequence < s.Sequence
}

// follow notes a message as the one that was applied last. One without a sequence leaves the order as it is.
func (s *messages) follow(m *Message) {
	if m.Answer {
		return
	}
	if m.Sequence > 0 {
		s.Run, s.Sequence = m.Run, m.Sequence
	}
	if m.Agent != events.AgentUser {
		s.Speaker = m.Agent
	}
}

// put stores what was decided for a message, in room bytes.
func (s *messages) put(entry applied, room int) {
	at := slices.IndexFunc(s.Applied, func(a applied) bool { return a.Message == entry.Message && a.Seq == entry.Seq })
	if at >= 0 { // it stays where it is in the order
		s.Applied[at] = entry
	} else {
		s.Applied = append(s.Applied, entry)
	}
	size := 0
	for i := range s.Applied {
		size += s.Applied[i].size()
	}
	for len(s.Applied) > maxApplied || size > room && len(s.Applied) > 1 {
		s.Floor = max(s.Floor, s.Applied[0].Seq)
		size -= s.Applied[0].size()
		s.Applied = s.Applied[1:]
	}
}

// size is how many bytes the decision takes at most as it is stored.
func (a *applied) size() int {
	const fields, longest = 100, 6 // bytes of a character in JSON
	n := fields + len(a.Message) + longest*len(a.Refused) + len(a.Handoff)
	for _, c := range a.Updates {
		n += fields + longest*len(c.Variable)
	}
	return n
}

// result returns what was decided. A step that the message does not have (any more) has no value.
func (a *applied) result(m *Message) Applied {
	r := Applied{Handoff: a.Handoff, OutOfOrder: a.OutOfOrder, Refused: a.Refused}
	for _, c := range a.Updates {
		if c.Step >= 0 && c.Step < len(m.Steps) && m.Steps[c.Step].Variable == c.Variable {
			r.Updates = append(r.Updates, bindings.Update{Variable: c.Variable, Value: m.Steps[c.Step].Value})
		}
	}
	return r
}

// InOrder implements [Store].
func (v *Variables) InOrder(ctx context.Context, app, chat string, m Message) (inOrder bool, err error) {
	key := subjects.ContextKey(app, chat)
	err = v.Retries.Until(ctx, v.docs.Name(), key, func() error {
		doc, _, err := v.read(ctx, key)
		if err == nil {
			state := doc.messages()
			inOrder = !state.late(&m)
		}
		return err
	})
	return inOrder, err
}
