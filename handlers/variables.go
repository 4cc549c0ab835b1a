package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Delta is what a tool changed in the context variables of its chat.
type Delta struct {
	Set    map[string]any `json:"set,omitempty"`
	Remove []string       `json:"remove,omitempty"`
	// Base has the digests of the values that the snapshot of the turn's event had for these names,
	// "" where it had none. Nil for an event without snapshot.
	Base map[string]string `json:"base,omitempty"`
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
	if len(d.Base) > 0 {
		base := make(map[string]any, len(d.Base))
		for name, digest := range d.Base {
			base[name] = digest
		}
		tree["base"] = base
	}
	return events.AppendJSON(nil, tree)
}

// variable is one entry of a chat's document. The sequence of the delta that wrote it last
// makes merging idempotent: an older delta, or the same one again, changes nothing.
type variable struct {
	Value   json.RawMessage `json:"value,omitempty"` // absent when removed
	Written uint64          `json:"written"`
	Base    string          `json:"base,omitempty"` // [Delta.Base] of the last delta that had one
}

// supersededBy reports whether the producer has changed a variable since a tool changed it last. A
// producer does not learn what tools set: a snapshot that repeats what it held then, or holds
// nothing, is older than the stored value. MozaiksAI needs no such rule, as its tools and its
// producer change one object.
func (e variable) supersededBy(snapshot map[string]any, name string) bool {
	value, ok := snapshot[name]
	return ok && digestOf(value) != e.Base
}

// digestOf identifies a value of a snapshot; null counts as no value, "".
func digestOf(value any) string {
	const size = 8
	data, err := events.AppendJSON(nil, value)
	if err != nil || value == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:size])
}

// baseOf is the [Delta.Base] of a delta of the turn that touches these names.
func (t *turn) baseOf(names map[string]bool) map[string]string {
	if t.ContextVariables == nil && t.base == nil {
		return nil
	}
	base := make(map[string]string, len(names))
	for name := range names {
		if t.base != nil {
			base[name] = t.base[name]
		} else {
			base[name] = digestOf(t.ContextVariables[name])
		}
	}
	return base
}

// maxVariables bounds the variables of a chat, removed ones included.
const maxVariables = 4096

// ContextStore holds the context variables of chats. [Variables] is the real one.
type ContextStore interface {
	// Load returns the variables of a chat as a value tree, empty when it has none: the stored
	// ones, and those of the snapshot of an event, nil if it has none. It tries until ctx ends,
	// except for what cannot be read: [events.ErrStateCorrupt]. snapshot is not modified.
	Load(ctx context.Context, app, chat string, snapshot map[string]any) (map[string]any, error)
	// Merge applies a delta that the journal stored with sequence seq; twice is the same as
	// once. It tries until ctx ends, except for what can never be stored,
	// [idempotency.ErrRefused], or merged: [events.ErrStateCorrupt].
	Merge(ctx context.Context, app, chat string, seq uint64, d Delta) error
}

// Variables is the bucket of context variables: one document a chat, merged by
// compare-and-set.
type Variables struct {
	Retries Retries // to be set before use, if at all

	nc *nats.Conn
	kv jetstream.KeyValue
}

// NewVariables opens the context variables of space. The bucket must exist.
func NewVariables(ctx context.Context, js jetstream.JetStream, space subjects.Space) (*Variables, error) {
	kv, err := js.KeyValue(ctx, space.ContextBucket())
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", space.ContextBucket(), err)
	}
	return &Variables{nc: js.Conn(), kv: kv}, nil
}

// Load implements [ContextStore].
func (v *Variables) Load(ctx context.Context, app, chat string, snapshot map[string]any) (map[string]any, error) {
	key := subjects.ContextKey(app, chat)
	var doc map[string]variable
	err := v.Retries.until(ctx, v.kv.Bucket(), key, func() (err error) {
		doc, _, err = v.read(ctx, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	vars := make(map[string]any, len(doc)+len(snapshot))
	maps.Copy(vars, snapshot)
	for name, entry := range doc {
		if entry.supersededBy(snapshot, name) {
			continue
		}
		if entry.Value == nil {
			delete(vars, name)
			continue
		}
		if vars[name], err = events.Decode(entry.Value); err != nil {
			return nil, v.corrupt(key, err)
		}
	}
	return vars, nil
}

// Merge implements [ContextStore].
func (v *Variables) Merge(ctx context.Context, app, chat string, seq uint64, d Delta) error {
	key := subjects.ContextKey(app, chat)
	var seen uint64
	again := 0
	return v.Retries.until(ctx, v.kv.Bucket(), key, func() error {
		revision, err := v.merge(ctx, key, seq, d)
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
		if again++; revision != seen {
			seen, again = revision, 1
		}
		if again < maxRereads {
			return errContended
		}
		return refusal(err, "document %s of bucket %s is always read at revision %d and never takes a change of it: ask `nats stream info KV_%s` whether its replicas are well",
			key, v.kv.Bucket(), revision, v.kv.Bucket())
	})
}

// maxRereads bounds how often the same revision of a document is read that a write then finds
// replaced: a replica may lag, but not for ever.
const maxRereads = 50

// merge tries once, and returns the revision that it has read.
func (v *Variables) merge(ctx context.Context, key string, seq uint64, d Delta) (uint64, error) {
	doc, revision, err := v.read(ctx, key)
	if err != nil {
		return 0, err
	}
	changed, err := d.apply(doc, seq)
	if err != nil || !changed {
		return revision, err
	}
	data, err := v.encode(key, doc)
	if err != nil {
		return revision, err
	}
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	if revision == 0 { // or deleted by hand: a create goes over what marks that
		_, err = v.kv.Create(ctx, key, data)
	} else {
		_, err = v.kv.Update(ctx, key, data, revision)
	}
	if err == nil {
		return revision, nil
	}
	if no := refused(err, v.kv.Bucket(), "make room in it, or raise its limit with the nats command"); no != nil {
		err = no
	}
	return revision, fmt.Errorf("context variables %s: %w", key, err)
}

// apply merges a delta with a sequence into a document and reports whether that changes it.
func (d Delta) apply(doc map[string]variable, seq uint64) (changed bool, err error) {
	put := func(name string, value json.RawMessage) {
		if old := doc[name]; old.Written < seq {
			base, ok := d.Base[name]
			if !ok {
				base = old.Base
			}
			doc[name] = variable{Value: value, Written: seq, Base: base}
			changed = true
		}
	}
	for name, value := range d.Set {
		data, err := events.AppendJSON(nil, value)
		if err != nil {
			return false, refusal(err, "context variable %.80q has no JSON form that can be stored", name)
		}
		put(name, data)
	}
	for _, name := range d.Remove {
		put(name, nil)
	}
	return changed, nil
}

// encode returns a document as it is stored, if it may be.
func (v *Variables) encode(key string, doc map[string]variable) ([]byte, error) {
	if len(doc) > maxVariables {
		return nil, refusal(nil, "a chat has at most %d context variables, removed ones included", maxVariables)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // those escapes would take six times the room
	if err := e.Encode(doc); err != nil {
		return nil, refusal(err, "the context variables %s have no JSON form", key)
	}
	if limit := min(InlineLimit*2, int(v.nc.MaxPayload())-headroom); b.Len() > limit {
		return nil, refusal(nil, "the context variables of the chat take %d bytes, %d is the most: remove some, or make them smaller", b.Len(), limit)
	}
	return b.Bytes(), nil
}

// read returns the document under a key and its revision, 0 when there is none (any more).
func (v *Variables) read(ctx context.Context, key string) (map[string]variable, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	entry, err := v.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return map[string]variable{}, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("context variables %s: %w", key, err)
	}
	var doc map[string]variable
	if err := json.Unmarshal(entry.Value(), &doc); err != nil || doc == nil {
		return nil, 0, v.corrupt(key, err)
	}
	return doc, entry.Revision(), nil
}

// corrupt is the error of a document that nobody can read.
func (v *Variables) corrupt(key string, cause error) error {
	return &events.Error{Code: events.CodeStateCorrupt, Op: "read context variables", Err: cause, Msg: fmt.Sprintf(
		"document %s of bucket %s cannot be read: put a sound revision of it back, or delete it (nats kv del %s %s) and the chat begins without variables",
		key, v.kv.Bucket(), v.kv.Bucket(), key)}
}
