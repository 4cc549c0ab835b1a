package variables

// This file is the stored form of the variables of a chat: its entries, the changes that are staged in it, and how
// merging a change, overlaying a snapshot and the bounds work. It does no I/O.

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// Bounds of a document.
const (
	// maxVariables bounds the variables of a chat, removed ones included.
	maxVariables = 4096
	// maxStaged bounds the staged changes of a chat. The oldest is dropped for one more: the message
	// of its turn merges it if it counts.
	maxStaged = 64
)

// stagedName is the entry of a document that holds the staged changes. To a version of the worker
// that does not know it, it is a variable that was removed.
const stagedName = "\x00staged"

// document holds the context variables of a chat by name, and the staged changes.
type document map[string]variable

// variable is one entry of a document. The sequence of the delta that wrote it last makes merging
// idempotent: an older delta, or the same one again, changes nothing.
type variable struct {
	Value   json.RawMessage `json:"value,omitempty"` // absent when removed
	Written uint64          `json:"written"`
	Base    string          `json:"base,omitempty"`   // [Delta.Base] of the last delta that had one
	Staged  []staged        `json:"staged,omitempty"` // of [stagedName] only

	Messages *messages `json:"messages,omitempty"` // of [messagesName] only
}

// staged is a change whose turn had not ended when it was stored: it counts once the response of
// the same run is stored.
type staged struct {
	Turn  string `json:"turn"`  // journal key of the call
	Nonce string `json:"nonce"` // of the run
	Token uint64 `json:"token"` // of the run: an older response belongs to an earlier turn of the key
	Seq   uint64 `json:"seq"`   // of the delta
	Edit  edit   `json:"edit"`
}

// apply merges a change with a sequence and reports whether that changes the document.
func (d document) apply(e edit, seq uint64) (changed bool) {
	put := func(name string, value json.RawMessage) {
		if old := d[name]; old.Written < seq {
			base, ok := e.Base[name]
			if !ok {
				base = old.Base
			}
			d[name] = variable{Value: value, Written: seq, Base: base}
			changed = true
		}
	}
	for name, value := range e.Set {
		put(name, value)
	}
	for _, name := range e.Remove {
		put(name, nil)
	}
	return changed
}

// merge applies a change that counts, which may be staged, and reports whether that changes the document.
func (d document) merge(e edit, seq uint64) (changed bool) {
	changed = d.apply(e, seq)
	return d.unstage(seq) || changed
}

func (d document) staged() []staged { return d[stagedName].Staged }

// stage adds a change, unless it is there.
func (d document) stage(s staged) {
	all := slices.DeleteFunc(slices.Clone(d.staged()), func(other staged) bool { return other.Seq == s.Seq })
	all = append(all, s)
	d[stagedName] = variable{Written: s.Seq, Staged: all[max(0, len(all)-maxStaged):]}
}

// unstage removes the change with a sequence and reports whether it was there.
func (d document) unstage(seq uint64) bool {
	before := d.staged()
	left := slices.DeleteFunc(slices.Clone(before), func(s staged) bool { return s.Seq == seq })
	if len(left) == len(before) {
		return false
	}
	if len(left) == 0 {
		delete(d, stagedName)
		return true
	}
	d[stagedName] = variable{Written: d[stagedName].Written, Staged: left}
	return true
}

// with is a copy of the document after a change, without what is staged.
func (d document) with(e edit, seq uint64) document {
	next := maps.Clone(d)
	delete(next, stagedName)
	next.apply(e, seq)
	return next
}

// values returns the variables of a chat as a value tree: the stored ones over the snapshot over the start values.
// Variables with a start value are declared: the workflow, and not the producer, owns what is stored of them, and they
// always exist. For other variables [variable.supersededBy] decides.
func (d document) values(below Layers) (map[string]any, error) {
	vars := make(map[string]any, len(d)+len(below.Snapshot)+len(below.Start))
	maps.Copy(vars, below.Start)
	maps.Copy(vars, below.Snapshot)
	for name, entry := range d {
		_, declared := below.Start[name]
		switch {
		case internal(name), !declared && entry.supersededBy(below.Snapshot, name):
		case entry.Value != nil:
			var err error
			if vars[name], err = events.Decode(entry.Value); err != nil {
				return nil, err
			}
		case declared:
			vars[name] = nil
		default:
			delete(vars, name)
		}
	}
	return vars, nil
}

// variables is the number of variables, removed ones included.
func (d document) variables() int {
	n := len(d)
	for _, name := range []string{stagedName, messagesName} {
		if _, ok := d[name]; ok {
			n--
		}
	}
	return n
}

// encode returns a document as it is stored, if that takes no more bytes than the limit. What was decided for messages does not
// count, it has a separate bound.
func (d document) encode(key string, limit int) ([]byte, error) {
	if d.variables() > maxVariables {
		return nil, store.Refusal(nil, "a chat has at most %d context variables, removed ones included", maxVariables)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // those escapes would take six times the room
	if err := e.Encode(d); err != nil {
		return nil, store.Refusal(err, "the context variables %s have no JSON form", key)
	}
	if size := b.Len(); size > limit {
		if m, ok := d[messagesName]; ok {
			without, err := json.Marshal(document{messagesName: m})
			if err != nil {
				return nil, store.Refusal(err, "the context variables %s have no JSON form", key)
			}
			size -= len(without)
		}
		if size > limit {
			return nil, store.Refusal(nil, "the context variables of the chat take %d bytes, %d is the most: remove some, or make them smaller", size, limit)
		}
	}
	return b.Bytes(), nil
}

// outcome is the outcome of a staged change, by the response of its turn.
type outcome int

const (
	undecided outcome = iota // the turn has no response yet
	counts                   // the run has stored the response
	dropped                  // the response is another run's, or does not name the change
)

// outcomeOf decides a staged change by the response of its turn.
func (s *staged) outcomeOf(end *idempotency.Record) outcome {
	switch {
	case end.Seq < s.Token:
		return undecided
	case end.Err == nil && end.Meta.Nonce == s.Nonce && query.NamesContext(end):
		return counts
	}
	return dropped
}

// key returns the journal key of the turn.
func (s *staged) key() (subjects.Key, bool) { return subjects.ParseCall(s.Turn) }
