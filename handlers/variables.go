package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Delta is what a tool changed in the context variables of its chat.
type Delta struct {
	Set    map[string]any `json:"set,omitempty"`
	Remove []string       `json:"remove,omitempty"`
}

// names returns the names of all variables that the delta touches.
func (d Delta) names() map[string]bool {
	names := make(map[string]bool, len(d.Set)+len(d.Remove))
	for name := range d.Set {
		names[name] = true
	}
	for _, name := range d.Remove {
		names[name] = true
	}
	return names
}

func (d Delta) encode() ([]byte, error) {
	tree := map[string]any{}
	if len(d.Set) > 0 {
		tree["set"] = d.Set
	}
	if len(d.Remove) > 0 {
		list := make([]any, len(d.Remove))
		for i, name := range d.Remove {
			list[i] = name
		}
		tree["remove"] = list
	}
	return events.AppendJSON(nil, tree)
}

// variable is one entry of a chat's document. The sequence of the delta that wrote it last
// makes merging idempotent: an older delta, or the same one again, changes nothing.
type variable struct {
	Value   json.RawMessage `json:"value,omitempty"` // absent when removed
	Written uint64          `json:"written"`
}

// maxVariables bounds the variables of a chat, removed ones included.
const maxVariables = 4096

// ContextStore holds the context variables of chats. [Variables] is the real one.
type ContextStore interface {
	// Load returns the variables of a chat as a value tree, empty when it has none.
	Load(ctx context.Context, app, chat string) (map[string]any, error)
	// Merge applies a delta that the journal stored with sequence seq; twice is the same as
	// once. It tries until ctx ends, except for what can never be stored:
	// [idempotency.ErrRefused].
	Merge(ctx context.Context, app, chat string, seq uint64, d Delta) error
}

// Variables is the bucket of context variables: one document a chat, merged by
// compare-and-set.
type Variables struct{ kv jetstream.KeyValue }

// NewVariables opens the context variables of space. The bucket must exist.
func NewVariables(ctx context.Context, js jetstream.JetStream, space subjects.Space) (*Variables, error) {
	kv, err := js.KeyValue(ctx, space.ContextBucket())
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", space.ContextBucket(), err)
	}
	return &Variables{kv: kv}, nil
}

// Load returns the variables of a chat as a value tree, empty when it has none.
func (v *Variables) Load(ctx context.Context, app, chat string) (map[string]any, error) {
	doc, _, err := v.read(ctx, app, chat)
	if err != nil {
		return nil, err
	}
	vars := make(map[string]any, len(doc))
	for name, entry := range doc {
		if entry.Value == nil {
			continue
		}
		if vars[name], err = events.Decode(entry.Value); err != nil {
			return nil, fmt.Errorf("context variable %.80q of chat %.80q: %w", name, chat, err)
		}
	}
	return vars, nil
}

// Merge applies a delta that the journal stored with sequence seq. It tries until ctx ends;
// applying a delta twice is the same as once.
func (v *Variables) Merge(ctx context.Context, app, chat string, seq uint64, d Delta) error {
	for {
		err := v.merge(ctx, app, chat, seq, d)
		if err == nil || errors.Is(err, idempotency.ErrRefused) {
			return err
		}
		if errPause := pause(ctx); errPause != nil {
			return errors.Join(errPause, err)
		}
	}
}

func (v *Variables) merge(ctx context.Context, app, chat string, seq uint64, d Delta) error {
	doc, revision, err := v.read(ctx, app, chat)
	if err != nil {
		return err
	}
	changed := false
	put := func(name string, value json.RawMessage) {
		if doc[name].Written < seq {
			doc[name] = variable{Value: value, Written: seq}
			changed = true
		}
	}
	for name, value := range d.Set {
		data, err := events.AppendJSON(nil, value)
		if err != nil {
			return fmt.Errorf("%w: context variable %.80q: %w", idempotency.ErrRefused, name, err)
		}
		put(name, data)
	}
	for _, name := range d.Remove {
		put(name, nil)
	}
	if !changed {
		return nil
	}
	if len(doc) > maxVariables {
		return fmt.Errorf("%w: chat %.80q has over %d context variables", idempotency.ErrRefused, chat, maxVariables)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // those escapes would take six times the room
	if err := e.Encode(doc); err != nil {
		return fmt.Errorf("%w: context variables of chat %.80q: %w", idempotency.ErrRefused, chat, err)
	}
	data := b.Bytes()
	if len(data) > InlineLimit*2 {
		return fmt.Errorf("%w: the context variables of chat %.80q take %d bytes", idempotency.ErrRefused, chat, len(data))
	}
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	if _, err = v.kv.Update(ctx, subjects.ContextKey(app, chat), data, revision); err != nil {
		return fmt.Errorf("context variables of chat %.80q: %w", chat, err)
	}
	return nil
}

func (v *Variables) read(ctx context.Context, app, chat string) (map[string]variable, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	entry, err := v.kv.Get(ctx, subjects.ContextKey(app, chat))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return map[string]variable{}, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("context variables of chat %.80q: %w", chat, err)
	}
	doc := map[string]variable{}
	if err := json.Unmarshal(entry.Value(), &doc); err != nil {
		return nil, 0, fmt.Errorf("context variables of chat %.80q: %w", chat, err)
	}
	return doc, entry.Revision(), nil
}
