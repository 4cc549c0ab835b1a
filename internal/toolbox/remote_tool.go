package toolbox

import (
	"context"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/tools"
)

// remoteTool is the invoker of one target. It is made when it is called first, and closed when no active set
// names its target and its calls have ended; a turn that found it before that and calls
// it later creates it again for as long as its call takes.
type remoteTool struct {
	all     *registry
	key     string
	binding *bindings.Binding // the first that named the target

	// Guarded by all.mu.
	tool            tools.Invoker // nil while it is not made
	calls           int           // under way
	wanted          bool          // an active set names it
	discoversEffect bool          // it reports its effect itself
}

var (
	_ tools.Queuer    = (*remoteTool)(nil)
	_ tools.Describer = (*remoteTool)(nil)
)

// Invoke implements [tools.Invoker].
func (r *remoteTool) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	tool, err := r.begin()
	if err != nil {
		return tools.Result{}, err
	}
	defer r.end()
	return tool.Invoke(ctx, call)
}

// Queues implements [tools.Queuer].
func (r *remoteTool) Queues() bool {
	tool, err := r.begin()
	if err != nil {
		return false
	}
	defer r.end()
	return tools.Queues(tool)
}

// Describe implements [tools.Describer]. Nothing is known of a tool that does not describe itself.
func (r *remoteTool) Describe(ctx context.Context) (tools.Description, error) {
	tool, err := r.begin()
	if err != nil {
		return tools.Description{}, err
	}
	defer r.end()
	if d, ok := tool.(tools.Describer); ok {
		return d.Describe(ctx)
	}
	return tools.Description{}, nil
}

// Known implements [tools.Describer].
func (r *remoteTool) Known() (tools.Description, bool) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	return r.known()
}

func (r *remoteTool) known() (tools.Description, bool) {
	if d, ok := r.tool.(tools.Describer); ok {
		return d.Known()
	}
	return tools.Description{}, false
}

// begin begins a call.
func (r *remoteTool) begin() (tools.Invoker, error) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.all.closed {
		return nil, tools.Retryable(errClosed)
	}
	if r.tool == nil {
		r.tool = r.all.make(r.binding)
		r.all.open[r] = true
		if r.all.known[r.key] == nil { // another one may have come in its place
			r.all.known[r.key] = r
		}
	}
	r.calls++
	return r.tool, nil
}

// end ends a call.
func (r *remoteTool) end() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.calls--
	r.settle()
}

// closeTimeout bounds how long the end of a tool may take.
const closeTimeout = 5 * time.Second

// settle closes a tool that is neither wanted nor called. all.mu is held.
func (r *remoteTool) settle() {
	if r.wanted || r.calls > 0 || r.all.closed {
		return
	}
	if r.all.known[r.key] == r {
		delete(r.all.known, r.key)
	}
	if tool := r.take(); tool != nil {
		r.all.closing.Go(closing(context.Background(), closeTimeout, tool, func(err error) {
			r.all.logger.Warn("a tool did not end as it should", "tool", r.binding.Tool, "kind", r.binding.Kind, "err", err)
		}))
	}
}

// take takes the tool out to be closed; nil if there is none to close. all.mu is held.
func (r *remoteTool) take() tools.Closer {
	closer, _ := r.tool.(tools.Closer)
	r.tool = nil
	delete(r.all.open, r)
	return closer
}

// closing closes a tool, which may take a while.
func closing(ctx context.Context, timeout time.Duration, tool tools.Closer, failed func(error)) func() {
	return func() {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := tool.Close(ctx); err != nil {
			failed(err)
		}
	}
}
