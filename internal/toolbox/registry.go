package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// registry holds the invokers of tools outside the workflow folder: one for each target, shared by all bindings of all
// sets that name an equal one. adopt decides which are kept, find returns one, discover asks them for their effect,
// close ends them; remoteTool (remote_tool.go) is one of them.
type registry struct {
	make    func(*bindings.Binding) tools.Invoker // without I/O
	logger  *slog.Logger
	changed chan struct{} // a set was adopted
	closing sync.WaitGroup

	mu     sync.Mutex
	known  map[string]*remoteTool        // to be shared, by key: the active ones and the open ones
	active map[target.Target]*remoteTool // of the active sets
	open   map[*remoteTool]bool          // those that are made
	closed bool
}

func newRegistry(maker func(*bindings.Binding) tools.Invoker, logger *slog.Logger) *registry {
	return &registry{
		make: maker, logger: logger, changed: make(chan struct{}, 1),
		known: map[string]*remoteTool{}, active: map[target.Target]*remoteTool{}, open: map[*remoteTool]bool{},
	}
}

// keyOf is equal for bindings that one invoker can serve.
func keyOf(b *bindings.Binding) string {
	where, err := json.Marshal(b.Target)
	if err != nil { // plain data has a JSON form
		where = fmt.Appendf(nil, "%p", b.Target)
	}
	key := string(b.Kind) + " " + string(where)
	if a, ok := b.Target.(*target.Agent); ok && a.Completions != nil && b.Output != nil {
		key += " " + string(b.Output.JSONSchema()) // it asks for an answer of this form
	}
	return key
}

// adopt keeps what the bindings of a set name and lets go of what they do not.
func (r *registry) adopt(all []*bindings.Binding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.known {
		one.wanted, one.discoversEffect = false, false
	}
	clear(r.active)
	for _, binding := range all {
		if binding.Target == nil {
			continue
		}
		one := r.get(binding)
		one.wanted = true
		one.discoversEffect = one.discoversEffect || binding.DiscoversEffect()
		r.known[one.key] = one
		r.active[binding.Target] = one
	}
	for _, one := range r.known {
		one.settle()
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// find returns the invoker of a binding. One that is not active lives as long as its calls.
func (r *registry) find(b *bindings.Binding) *remoteTool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one, ok := r.active[b.Target]; ok {
		return one
	}
	return r.get(b)
}

// get is find by key. mu is held.
func (r *registry) get(b *bindings.Binding) *remoteTool {
	key := keyOf(b)
	if one, ok := r.known[key]; ok {
		return one
	}
	return &remoteTool{all: r, key: key, binding: b}
}

// discoverTimeout bounds how long one tool is asked about itself.
const discoverTimeout = 10 * time.Second

// discover asks the tools whose effect is not discovered yet, all at the same time.
func (r *registry) discover(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for _, one := range r.undiscovered() {
		asked.Go(func() {
			if _, err := one.Describe(ctx); err != nil && ctx.Err() == nil {
				r.logger.Warn("the effect of a tool could not be discovered; it keeps the effect of its kind until then", "tool", one.binding.Tool, "err", err)
			}
		})
	}
	asked.Wait()
}

// undiscovered lists the tools whose effect is not discovered yet.
func (r *registry) undiscovered() []*remoteTool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*remoteTool
	for _, one := range r.active {
		if one.wanted && one.discoversEffect {
			if _, reported := one.known(); !reported {
				list = append(list, one)
			}
		}
	}
	return list
}

// errClosed is the error of a call after the end.
var errClosed = errors.New("the worker has stopped: its tools are closed")

// close ends all invokers.
func (r *registry) close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	var failed []error
	var failing sync.Mutex
	for one := range r.open {
		if tool := one.take(); tool != nil {
			r.closing.Go(closing(ctx, closeTimeout, tool, func(err error) {
				failing.Lock()
				defer failing.Unlock()
				failed = append(failed, fmt.Errorf("close %s tool %s: %w", one.binding.Kind, one.binding.Tool, err))
			}))
		}
	}
	r.mu.Unlock()
	r.closing.Wait()
	failing.Lock()
	defer failing.Unlock()
	return errors.Join(failed...)
}
