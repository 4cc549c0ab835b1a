package variables

import (
	"encoding/json"
	"fmt"
)

// Contents are what a stored document holds, for readers that compare it with the journal.
type Contents struct {
	Values    map[string]Value // by the name of the variable, removed ones included
	Decisions []Decision       // in the order in which they were made
	Dropped   bool             // decisions of earlier messages are no longer there
	Speaker   string           // the agent that spoke last, users left out
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
	OutOfOrder bool   // a later message was applied before, so it changes nothing
	Updates    []StepOf
	Handoff    json.RawMessage // nil if it is not decided, or not due
}

// StepOf names a variable that a message has set.
type StepOf struct {
	Variable string
	Step     int // number of the step in the text or answer, -1 if it is not known
}

// ReadContents reads a stored document. An empty one holds nothing.
func ReadContents(data []byte) (*Contents, error) {
	contents := &Contents{Values: map[string]Value{}}
	if len(data) == 0 {
		return contents, nil
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("read the context variables of a chat: %w", err)
	}
	for name, v := range doc {
		if !internal(name) {
			contents.Values[name] = Value{JSON: v.Value, Written: v.Written}
		}
	}
	state := doc.messages()
	contents.Dropped, contents.Speaker = state.Floor > 0, state.Speaker
	for _, a := range state.Applied {
		d := Decision{Message: a.Message, Seq: a.Seq, OutOfOrder: a.OutOfOrder, Handoff: a.Handoff}
		for _, u := range a.Updates {
			d.Updates = append(d.Updates, StepOf(u))
		}
		contents.Decisions = append(contents.Decisions, d)
	}
	return contents, nil
}
