package variables

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/store"
)

// This file has the changes of one tool run: as the run collects them (Delta), as they are on their way to the document
// (Change), and as a record of the journal stores them (Encode, DecodeDelta).

// Delta is what a tool changed in the context variables of its chat.
type Delta struct {
	Set    map[string]any `json:"set,omitempty"`
	Remove []string       `json:"remove,omitempty"`
	// Base has the digests of the values that the snapshot of the turn's event had for these names,
	// "" where it had none. Nil for an event without snapshot.
	Base map[string]string `json:"base,omitempty"`
}

// Change is a delta on its way to the variables of a chat.
type Change struct {
	Delta

	Run idempotency.Hold // the run of the tool: its response decides whether the change counts
	Seq uint64           // of the delta in the journal: a later one wins
}

// Names returns the names of all variables that the delta touches, sorted.
func (d Delta) Names() []string {
	names := append(slices.Collect(maps.Keys(d.Set)), d.Remove...)
	slices.Sort(names)
	return slices.Compact(names)
}

// Without returns the delta without the variables of some names, and which of these names it had, sorted.
func (d Delta) Without(names map[string]any) (_ Delta, dropped []string) {
	taken := func(name string) bool { _, ok := names[name]; return ok }
	if dropped = slices.DeleteFunc(d.Names(), func(name string) bool { return !taken(name) }); len(dropped) == 0 {
		return d, nil
	}
	d.Set, d.Remove = maps.Clone(d.Set), slices.DeleteFunc(slices.Clone(d.Remove), taken)
	maps.DeleteFunc(d.Set, func(name string, _ any) bool { return taken(name) })
	return d, dropped
}

// Encode returns the delta as a record of the journal holds it.
func (d Delta) Encode() ([]byte, error) {
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

// edit is a delta with the values as they are stored.
type edit struct {
	Set    map[string]json.RawMessage `json:"set,omitempty"`
	Remove []string                   `json:"remove,omitempty"`
	Base   map[string]string          `json:"base,omitempty"`
}

// edit encodes the values of a delta.
func (d Delta) edit() (edit, error) {
	e := edit{Set: make(map[string]json.RawMessage, len(d.Set)), Remove: d.Remove, Base: d.Base}
	for _, name := range d.Names() {
		if internal(name) {
			return edit{}, store.Refusal(nil, "a context variable cannot be called %q", name)
		}
	}
	for name, value := range d.Set {
		data, err := events.AppendJSON(nil, value)
		if err != nil {
			return edit{}, store.Refusal(err, "context variable %.80q has no JSON form that can be stored", name)
		}
		e.Set[name] = data
	}
	return e, nil
}

// DecodeDelta reads a stored delta.
func DecodeDelta(data []byte) (Delta, error) {
	var e edit
	if err := json.Unmarshal(data, &e); err != nil {
		return Delta{}, DamagedDelta(err)
	}
	d := Delta{Set: make(map[string]any, len(e.Set)), Remove: e.Remove, Base: e.Base}
	for name, raw := range e.Set {
		value, err := events.Decode(raw)
		if err != nil {
			return Delta{}, DamagedDelta(err)
		}
		d.Set[name] = value
	}
	return d, nil
}

// DamagedDelta is the error of a delta in the journal that cannot be read because of err.
func DamagedDelta(err error) error {
	return &events.Error{Code: events.CodeStateCorrupt, Op: "read context changes", Msg: "a stored change of context variables cannot be read", Err: err}
}
