package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/oneturn/oneturn/events"
)

// Context variables of a Go tool: read at their first use, changed in memory, and returned as the difference to
// what was read.

// running is what the context of a Go tool carries.
type running struct {
	call  *Call
	vars  Variables
	steps steps
}

type runningKey struct{}

// CallFrom returns the call that ctx belongs to, or nil outside a Go tool made by [Func].
func CallFrom(ctx context.Context) *Call {
	if r, ok := ctx.Value(runningKey{}).(*running); ok {
		return r.call
	}
	return nil
}

// Vars returns the context variables of the call that ctx belongs to. What the tool changes
// becomes part of the call's [Result] when the tool succeeds. Outside a tool made by [Func]
// it returns an empty container whose changes go nowhere.
func Vars(ctx context.Context) *Variables {
	if r, ok := ctx.Value(runningKey{}).(*running); ok {
		return &r.vars
	}
	return &Variables{}
}

// Variables holds the context variables of one call. It is safe for concurrent use.
type Variables struct {
	mu      sync.Mutex
	load    func() (map[string]any, error) // fills before at the first use, nil when it is filled
	err     error                          // of load
	before  map[string]any                 // of the call, never changed
	set     map[string]any
	removed map[string]bool
}

// Get returns a variable as a value tree (nil, bool, string, json.Number, []any,
// map[string]any), which must not be modified, and whether it exists.
func (v *Variables) Get(key string) (any, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.get(key)
}

// fill reads the variables of the call at their first use.
func (v *Variables) fill() {
	if v.load != nil {
		v.before, v.err = v.load()
		v.load = nil
	}
}

func (v *Variables) get(key string) (any, bool) {
	if value, ok := v.set[key]; ok {
		return value, true
	}
	if v.removed[key] {
		return nil, false
	}
	v.fill()
	value, ok := v.before[key]
	return value, ok
}

// Set changes a variable. The value is what [json.Marshal] makes of it at this moment; one
// that has no JSON form is an error and changes nothing.
func (v *Variables) Set(key string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("set context variable %q: %w", key, err)
	}
	tree, err := events.Decode(data)
	if err != nil {
		return fmt.Errorf("set context variable %q: %w", key, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.set == nil {
		v.set = map[string]any{}
	}
	v.set[key] = tree
	delete(v.removed, key)
	return nil
}

// Remove removes a variable; one that does not exist is not an error.
func (v *Variables) Remove(key string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.set, key)
	if v.removed == nil {
		v.removed = map[string]bool{}
	}
	v.removed[key] = true
}

// Keys returns the names of all variables, sorted.
func (v *Variables) Keys() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fill()
	keys := maps.Clone(v.set)
	if keys == nil {
		keys = map[string]any{}
	}
	for key := range v.before {
		if !v.removed[key] {
			keys[key] = nil
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// changes returns what really differs from the variables of the call. The error is the one of
// reading them: then the tool has worked on nothing.
func (v *Variables) changes() (map[string]any, []string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.set) > 0 || len(v.removed) > 0 {
		v.fill()
	}
	if v.err != nil {
		return nil, nil, v.err
	}
	var set map[string]any
	for key, value := range v.set {
		if old, ok := v.before[key]; ok && sameJSON(old, value) {
			continue
		}
		if set == nil {
			set = map[string]any{}
		}
		set[key] = value
	}
	var remove []string
	for key := range v.removed {
		if _, ok := v.before[key]; ok {
			remove = append(remove, key)
		}
	}
	slices.Sort(remove)
	return set, remove, nil
}

// sameJSON compares two value trees by their canonical JSON.
func sameJSON(a, b any) bool {
	x, errX := events.AppendJSON(nil, a)
	y, errY := events.AppendJSON(nil, b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
