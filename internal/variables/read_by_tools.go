package variables

import (
	"context"
	"slices"

	"github.com/oneturn/oneturn/subjects"
)

// Variables whose value a tool reads when the chat needs it first. That the document has an entry shows that the value was read, or
// that something has set it since: such a variable is never filled again.

// Unread implements [Store].
func (v *Variables) Unread(ctx context.Context, app, chat string, below Layers, names []string) (values map[string]any, unread []string, err error) {
	key := subjects.ContextKey(app, chat)
	doc, err := v.settled(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	unread = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, stored := doc[name]
		return stored || below.Snapshot[name] != nil
	})
	if values, err = doc.values(below); err != nil {
		return nil, nil, v.corrupt(key, err)
	}
	return values, unread, nil
}

// Fill implements [Store]. The entries have no sequence, so that each change of a tool is later.
func (v *Variables) Fill(ctx context.Context, app, chat string, values map[string]any) error {
	key := subjects.ContextKey(app, chat)
	e, err := Delta{Set: values}.edit()
	if err != nil {
		return err
	}
	return v.update(ctx, key, func(doc document) (changed bool, err error) {
		if _, err := v.settle(ctx, doc); err != nil {
			return false, err
		}
		for name, value := range e.Set {
			if _, stored := doc[name]; !stored {
				doc[name], changed = variable{Value: value}, true
			}
		}
		return changed, nil
	})
}
