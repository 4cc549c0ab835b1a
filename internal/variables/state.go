package variables

import (
	"context"
	"slices"

	"github.com/oneturn/oneturn/subjects"
)

// This file is the document of a chat as people read it. It is read only: nothing is merged or written.

// State is what the document of a chat holds.
type State struct {
	Revision uint64            // of the document in its bucket, 0 if the chat has none
	Values   map[string]any    // of the variables: the stored ones over those below
	Written  map[string]uint64 // of the variables that were set in the chat: the sequence in the journal of the record that did, 0 if a tool has read the value
	Removed  []string          // variables that a tool has removed, unless they are declared
	Speaker  string            // the agent that spoke last, "" if none did
	Run      string            // run id of the last message with a turn_sequence
	Sequence int64             // its turn_sequence, 0 if there was none
	Decided  []Decision        // of the newest messages, 128 at most, the newest last
}

// State returns what is stored for a chat, over the start values of its workflow. App is the token of the tenant, chat an id. Changes of
// tools count once the turn has its response, also if no worker has merged them yet. It fails with [events.ErrStateCorrupt] if the
// document cannot be decoded.
func (v *Variables) State(ctx context.Context, app, chat string, start map[string]any) (*State, error) {
	return v.StateOver(ctx, app, chat, Layers{Start: start})
}

// StateOver is [Variables.State] with the snapshot of a producer, too. A stored value that the snapshot supersedes is not Written.
func (v *Variables) StateOver(ctx context.Context, app, chat string, below Layers) (*State, error) {
	key := app + "." + subjects.Token(chat)
	doc, revision, err := v.read(ctx, key)
	if err != nil {
		return nil, err
	}
	if _, err := v.settle(ctx, doc); err != nil {
		return nil, err
	}
	s := &State{Revision: revision, Written: map[string]uint64{}}
	if s.Values, err = doc.values(below); err != nil {
		return nil, v.corrupt(key, err)
	}
	for name, entry := range doc {
		_, shown := s.Values[name]
		_, declared := below.Start[name]
		switch {
		case internal(name), !declared && entry.supersededBy(below.Snapshot, name):
		case shown:
			s.Written[name] = entry.Written
		default:
			s.Removed = append(s.Removed, name)
		}
	}
	slices.Sort(s.Removed)
	contents, m := doc.contents(), doc.messages()
	s.Speaker, s.Run, s.Sequence, s.Decided = contents.Speaker, m.Run, m.Sequence, contents.Decisions
	return s, nil
}

// Of returns what was decided for the message with a token whose text has a sequence, nil if that is not kept (any more).
func (s *State) Of(token string, seq uint64) *Decision {
	for i := range s.Decided {
		if d := &s.Decided[i]; d.Message == token && d.Seq == seq {
			return d
		}
	}
	return nil
}
