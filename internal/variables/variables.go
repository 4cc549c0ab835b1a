package variables

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// This file reads and writes documents: each operation reads the current revision, changes it in memory with the rules of
// document.go, and replaces it by compare-and-set, repeated until that succeeds (update). Staged changes of turns that have
// ended are merged on the way (settle).

// Store holds the context variables of chats. [Variables] is the real one.
//
// A change is staged before the response of its turn is stored, and merged after that: the
// response decides whether it counts. A Load or Stage that finds a change of a worker that died in
// between merges it.
type Store interface {
	// Load returns the variables of a chat as a value tree, empty when it has none: the stored ones over the
	// layers below. It tries until ctx ends, except for what cannot be read: [events.ErrStateCorrupt]. The layers are not
	// modified.
	Load(ctx context.Context, app, chat string, below Layers) (map[string]any, error)
	// Stage stores a change that does not count yet, with all the room that merging it takes. It
	// tries until ctx ends, except for what can never be stored, [idempotency.ErrRefused], or
	// merged: [events.ErrStateCorrupt].
	Stage(ctx context.Context, app, chat string, c Change) error
	// Merge applies a delta that the journal stored with sequence seq; twice is the same as
	// once. It returns the same errors as Stage.
	Merge(ctx context.Context, app, chat string, seq uint64, d Delta) error
	// Apply decides what a message changes and, if that is asked for, the next speaker; once decided, both stay. It returns the same
	// errors as Stage.
	Apply(ctx context.Context, app, chat string, m Message) (Applied, error)
	// Unread returns the variables of a chat, and which of the names have neither a stored value nor one in the snapshot. It returns
	// the same errors as Load.
	Unread(ctx context.Context, app, chat string, below Layers, names []string) (values map[string]any, unread []string, err error)
	// Fill stores values of variables that have none stored, in one step; a variable that has one by then keeps it. It returns the
	// same errors as Stage.
	Fill(ctx context.Context, app, chat string, values map[string]any) error
	// InOrder reports whether no later message of its run was applied before a message. It is a read: Apply decides. It returns the
	// same errors as Load.
	InOrder(ctx context.Context, app, chat string, m Message) (bool, error)
}

// Layers are the values of variables that nothing has stored.
type Layers struct {
	Start    map[string]any // of the declared variables, see [bindings.Set.StartValues]; nil if the workflow declares none
	Snapshot map[string]any // of the event, over the start values; nil if it has none
}

// Variables are the context variables of chats in a bucket: one document a chat, merged by
// compare-and-set.
type Variables struct {
	Retries store.Retries // to be set before use, if at all
	// Journal has the responses that decide staged changes. It is to be set before use; without it
	// a change counts when it is merged and no sooner.
	Journal *idempotency.Journal

	docs store.Documents
}

// New opens the context variables of space. The bucket must exist.
func New(ctx context.Context, js jetstream.JetStream, space subjects.Space) (*Variables, error) {
	bucket, err := store.OpenDocuments(ctx, js, space)
	if err != nil {
		return nil, err
	}
	return NewIn(bucket), nil
}

// NewIn returns the context variables that are stored in some documents.
func NewIn(docs store.Documents) *Variables { return &Variables{docs: docs} }

// Load implements [Store].
func (v *Variables) Load(ctx context.Context, app, chat string, below Layers) (map[string]any, error) {
	key := subjects.ContextKey(app, chat)
	doc, err := v.settled(ctx, key)
	if err != nil {
		return nil, err
	}
	vars, err := doc.values(below)
	if err != nil {
		return nil, v.corrupt(key, err)
	}
	return vars, nil
}

// settled returns the document under a key, with what is staged and counts.
func (v *Variables) settled(ctx context.Context, key string) (doc document, err error) {
	err = v.Retries.Until(ctx, v.docs.Name(), key, func() error {
		var revision uint64
		var err error
		if doc, revision, err = v.read(ctx, key); err != nil {
			return err
		}
		changed, err := v.settle(ctx, doc)
		if err == nil && changed {
			_ = v.write(ctx, key, doc, revision) // if that fails, the next caller does it again
		}
		return err
	})
	return doc, err
}

// Stage implements [Store].
func (v *Variables) Stage(ctx context.Context, app, chat string, c Change) error {
	e, err := c.edit()
	if err != nil {
		return err
	}
	key := subjects.ContextKey(app, chat)
	s := staged{Turn: c.Run.Key.String(), Nonce: c.Run.Nonce, Token: c.Run.Token, Seq: c.Seq, Edit: e}
	return v.update(ctx, key, func(doc document) (bool, error) {
		if _, err := v.settle(ctx, doc); err != nil {
			return false, err
		}
		if _, err := doc.with(e, math.MaxUint64).encode(key, v.limit()); err != nil {
			return false, err
		}
		doc.stage(s)
		return true, nil
	})
}

// Merge implements [Store].
func (v *Variables) Merge(ctx context.Context, app, chat string, seq uint64, d Delta) error {
	e, err := d.edit()
	if err != nil {
		return err
	}
	return v.update(ctx, subjects.ContextKey(app, chat), func(doc document) (bool, error) {
		return doc.merge(e, seq), nil
	})
}

// settle merges the staged changes that count and drops those that do not. It reports whether the
// document has changed.
func (v *Variables) settle(ctx context.Context, doc document) (changed bool, err error) {
	if v.Journal == nil {
		return false, nil
	}
	for _, s := range doc.staged() {
		o := dropped
		if key, ok := s.key(); ok {
			if o, err = v.outcomeOf(ctx, key, &s); err != nil {
				return changed, err
			}
		}
		switch o {
		case undecided:
			continue
		case counts:
			doc.apply(s.Edit, s.Seq)
		case dropped:
		}
		changed = doc.unstage(s.Seq) || changed
	}
	return changed, nil
}

// outcomeOf reads the outcome of a staged change. One whose delta has expired is dropped.
func (v *Variables) outcomeOf(ctx context.Context, key subjects.Key, s *staged) (outcome, error) {
	end, err := v.Journal.End(ctx, key)
	if err == nil {
		return s.outcomeOf(&end), nil
	}
	if errors.Is(err, idempotency.ErrNotFound) {
		if _, err = v.Journal.At(ctx, s.Seq); errors.Is(err, idempotency.ErrNotFound) {
			return dropped, nil
		}
	}
	return undecided, err
}

// update changes a document until it is stored or nothing is to be changed.
func (v *Variables) update(ctx context.Context, key string, change func(document) (bool, error)) error {
	var seen uint64
	again := 0
	return v.Retries.Until(ctx, v.docs.Name(), key, func() error {
		doc, revision, err := v.read(ctx, key)
		if err != nil {
			return err
		}
		if changed, err := change(doc); err != nil || !changed {
			return err
		}
		err = v.write(ctx, key, doc, revision)
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
		if again++; revision != seen {
			seen, again = revision, 1
		}
		if again < maxContended {
			return store.ErrContended
		}
		return store.Refusal(err, "document %s of bucket %s is always read at revision %d, but a write finds another one: check its replicas with `nats stream info KV_%s`",
			key, v.docs.Name(), revision, v.docs.Name())
	})
}

// maxContended bounds how often the same revision of a document is read that a write then finds
// replaced: a leader that was replaced may answer, but not forever.
const maxContended = 50

// read returns the document under a key and its revision.
func (v *Variables) read(ctx context.Context, key string) (document, uint64, error) {
	data, revision, err := v.docs.Read(ctx, key)
	if err != nil {
		return nil, 0, fmt.Errorf("context variables %s: %w", key, err)
	}
	if data == nil {
		return document{}, revision, nil
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil || doc == nil {
		return nil, 0, v.corrupt(key, err)
	}
	return doc, revision, nil
}

// write replaces the document of a revision. Staged changes may take what a message can hold
// beyond the limit of the variables.
func (v *Variables) write(ctx context.Context, key string, doc document, revision uint64) error {
	limit := v.limit()
	if len(doc.staged()) > 0 {
		limit = v.docs.Limit() - v.roomOfMessages()
	}
	data, err := doc.encode(key, limit)
	if err != nil {
		return err
	}
	if err = failpoint.Before(failpoint.Document); err == nil {
		_, err = v.docs.Write(ctx, key, data, revision)
	}
	if err == nil {
		failpoint.Hit(failpoint.Document, "", key) // stored, and the writer does not know yet
		if err = failpoint.After(failpoint.Document); err == nil {
			return nil
		}
	}
	if no := store.Refused(err, v.docs.Name(), "make room in it, or raise its limit with the nats command"); no != nil {
		err = no
	}
	return fmt.Errorf("context variables %s: %w", key, err)
}

// limit is how many bytes the variables of a chat may take.
func (v *Variables) limit() int { return min(store.InlineLimit*2, v.docs.Limit()-v.roomOfMessages()) }

// roomOfMessages is how many bytes of a document what was decided for messages may take, in addition to its variables.
func (v *Variables) roomOfMessages() int { return min(roomOfMessages, v.docs.Limit()/8) }

// corrupt is the error of a document that cannot be decoded.
func (v *Variables) corrupt(key string, cause error) error {
	return &events.Error{Code: events.CodeStateCorrupt, Op: "read context variables", Err: cause, Msg: fmt.Sprintf(
		"document %s of bucket %s cannot be decoded: restore an intact revision of it, or delete it (nats kv del %s %s) and the chat begins without variables",
		key, v.docs.Name(), v.docs.Name(), key)}
}
