package variables

import (
	"encoding/json"
	"fmt"
)

// Contents are what a stored document holds: for readers that compare it with the journal, and as a part of [State].
type Contents struct {
	Values    map[string]Value // by the name of the variable, removed ones included
	Decisions []Decision       // of the newest messages, 128 at most, in the order in which they were made
	Dropped   bool             // decisions of earlier messages are no longer there
	Speaker   string           // the agent that spoke last, users left out; "" if none did
}

// Value is a stored variable.
type Value struct {
	JSON    json.RawMessage // nil for a variable that was removed
	Written uint64          // sequence in the journal of the delta or the text that has set it last
}

// Decision is what a document has decided for a message.
type Decision struct {
	Message    string // its token, see [subjects.MessageToken]
	Seq        uint64 // of its text in the journal
	OutOfOrder bool   // a later message of its run was applied before, so it changes nothing
	Refused    string // why it has set nothing, although a trigger matched: "" if it was not refused
	Updates    []StepOf
	Handoff    json.RawMessage // nil if it is not decided, or not due
}

// Changed returns the variables that the message has set.
func (d *Decision) Changed() []string {
	if len(d.Updates) == 0 {
		return nil
	}
	names := make([]string, 0, len(d.Updates))
	for _, u := range d.Updates {
		names = append(names, u.Variable)
	}
	return names
}

// StepOf names a variable that a message has set.
type StepOf struct {
	Variable string
	Step     int // number of the step in the text or answer, -1 if it is not known
}

// ReadContents reads a stored document. An empty one holds nothing.
func ReadContents(data []byte) (*Contents, error) {
	var doc document
	if len(data) > 0 {
		if err := json.Unmarshal(data, &doc); err != nil {
			return nil, fmt.Errorf("read the context variables of a chat: %w", err)
		}
	}
	return doc.contents(), nil
}

func (d document) contents() *Contents {
	contents := &Contents{Values: make(map[string]Value, len(d))}
	for name, v := range d {
		if !internal(name) {
			contents.Values[name] = Value{JSON: v.Value, Written: v.Written}
		}
	}
	state := d.messages()
	contents.Dropped, contents.Speaker = state.Floor > 0, state.Speaker
	for _, a := range state.Applied {
		made := Decision{Message: a.Message, Seq: a.Seq, OutOfOrder: a.OutOfOrder, Refused: a.Refused, Handoff: a.Handoff}
		for _, u := range a.Updates {
			made.Updates = append(made.Updates, StepOf(u))
		}
		contents.Decisions = append(contents.Decisions, made)
	}
	return contents
}
