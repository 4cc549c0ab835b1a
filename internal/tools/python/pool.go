package python

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Pool, its options and the versions of workflows: Tool binds a function to the active version, Renew activates
// another one. send runs a call in a child of its version, in another one if that ended before it was entered.

const (
	defaultSize     = 4
	defaultMaxFrame = 8 << 20
	defaultIdle     = 5 * time.Minute
	defaultGrace    = 250 * time.Millisecond
	defaultLoad     = time.Minute
	maxTries        = 3 // children that may end before they enter a call
)

// Options configure a [Pool].
type Options struct {
	Root        string        // folder that holds the workflow folders, or is one of them
	Interpreter string        // Python to use; "" means .venv of the workflow, of Root, $VIRTUAL_ENV, python3
	Size        int           // child processes per workflow, started when needed; 0 means 4
	Env         []string      // variables of the worker's environment that tools get: NAME or PREFIX_*
	MaxFrame    int           // bytes of a call and of its result; 0 means 8 MiB
	MaxMemory   int64         // bytes of address space per child; 0 means no limit
	IdleAfter   time.Duration // how long an idle child is kept; 0 means 5 minutes
	Grace       time.Duration // how long a call may take to obey its cancellation before its process is killed; 0 means 250 ms
	LoadTimeout time.Duration // how long a process may take to get ready, and then until it enters a function: its import, for the most part; 0 means 1 minute
	Logger      *slog.Logger  // gets what tools print; nil discards it
}

// Stats counts what a pool has and had.
type Stats struct {
	Children int    // processes now
	Running  int    // calls that a process runs now, abandoned ones included
	Waiting  int    // calls that wait for a process
	Asking   int    // calls that wait for a person and take no room in their process
	Started  uint64 // processes since the start
	Died     uint64 // processes that ended while in use: crashes, and calls that did not end in time
}

type counters struct{ started, died atomic.Uint64 }

// Pool runs Python functions in child processes. It is safe for concurrent use.
type Pool struct {
	opts   Options
	counts counters
	nextID atomic.Uint64

	mu     sync.Mutex
	groups map[string]*group   // active version, by workflow
	all    map[*group]struct{} // these, and versions before them that still have processes or calls
	closed bool
}

// NewPool returns a pool. It starts no process: the first call of a workflow does.
func NewPool(opts Options) *Pool {
	if abs, err := filepath.Abs(opts.Root); err == nil {
		opts.Root = abs
	}
	if opts.Size <= 0 {
		opts.Size = defaultSize
	}
	if opts.MaxFrame <= 0 {
		opts.MaxFrame = defaultMaxFrame
	}
	if opts.IdleAfter <= 0 {
		opts.IdleAfter = defaultIdle
	}
	if opts.Grace <= 0 {
		opts.Grace = defaultGrace
	}
	if opts.LoadTimeout <= 0 {
		opts.LoadTimeout = defaultLoad
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Pool{opts: opts, groups: map[string]*group{}, all: map[*group]struct{}{}}
}

// Tool returns the tool that runs a function of a Python file. The file is named relative to
// the workflow's folder, to its tools folder, or to Root; it is looked up at the first call.
// The tool keeps the version of the workflow that is active now: see [Pool.Renew].
func (p *Pool) Tool(workflow, file, function string) tools.Invoker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &tool{pool: p, group: p.group(workflow), workflow: workflow, file: filepath.ToSlash(file), function: function}
}

// Renew activates a new version of a workflow. Tools made from now on run in new processes.
// Tools that were made before keep their version: their calls are not disturbed, even
// if they still wait for a process. Processes take the Python files of the workflow's
// folder from sources, which are named relative to it, whatever is on the disk by then; what
// sources lacks, and all if they are nil, they read from the disk.
func (p *Pool) Renew(workflow string, sources map[string][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := p.groups[workflow]; g != nil {
		g.supersede()
	}
	p.forget()
	p.add(workflow, sources)
}

// Close refuses new calls and waits for the running ones; when ctx ends first it kills their
// processes and returns an error. No process of the pool is left when it returns.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	groups := slices.Collect(maps.Keys(p.all))
	p.mu.Unlock()
	results := make(chan error, len(groups))
	for _, g := range groups {
		go func() { results <- g.close(ctx) }()
	}
	errs := make([]error, 0, len(groups))
	for range groups {
		errs = append(errs, <-results)
	}
	return errors.Join(errs...)
}

// Stats returns what the pool has now and how many processes it has had.
func (p *Pool) Stats() Stats {
	stats := Stats{Started: p.counts.started.Load(), Died: p.counts.died.Load()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	for g := range p.all {
		g.mu.Lock()
		stats.Children += len(g.all)
		stats.Waiting += len(g.waiters)
		for _, s := range g.all {
			stats.Running += s.load
			stats.Asking += s.waiting
		}
		g.mu.Unlock()
	}
	return stats
}

// group returns the active version of a workflow. The pool is locked.
func (p *Pool) group(workflow string) *group {
	if g := p.groups[workflow]; g != nil {
		return g
	}
	return p.add(workflow, nil)
}

// add activates a version of a workflow. The pool is locked.
func (p *Pool) add(workflow string, sources map[string][]byte) *group {
	g := newGroup(p.opts.Size, p.opts.IdleAfter, &p.counts, func(g *group) *child { return p.child(g, workflow) })
	g.sources, g.closed = sources, p.closed
	p.groups[workflow] = g
	p.all[g] = struct{}{}
	return g
}

// forget drops earlier versions that have ended. The pool is locked.
func (p *Pool) forget() {
	maps.DeleteFunc(p.all, func(g *group, _ struct{}) bool { return g.calls == 0 && g.over() })
}

// begin records a call of a version, which may have been forgotten since its tool was made.
func (p *Pool) begin(g *group) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	g.calls++
	p.all[g] = struct{}{}
	return true
}

func (p *Pool) end(g *group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.calls--
}

func (p *Pool) child(g *group, workflow string) *child {
	return newChild(g, launch{
		workflow: workflow, root: p.opts.Root, python: p.opts.Interpreter, allow: p.opts.Env,
		maxFrame: p.opts.MaxFrame, maxMem: p.opts.MaxMemory, grace: p.opts.Grace,
		load: p.opts.LoadTimeout, sources: g.sources, environ: &g.environ,
	}, p.opts.Logger.With("workflow", workflow))
}

// tool is one Python function.
type tool struct {
	pool                     *Pool
	group                    *group
	workflow, file, function string
}

// Queues implements [tools.Queuer]: a call waits for a process and for the import of its file.
func (*tool) Queues() bool { return true }

// Invoke implements [tools.Invoker].
func (t *tool) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	op := "call Python tool " + t.function
	if ctx.Err() != nil {
		return tools.Result{}, tools.Ended(ctx, op, "before the call; the tool was not entered")
	}
	id := t.pool.nextID.Add(1)
	frame, err := newRequest(id, t.file, t.function, call)
	if err != nil {
		return tools.Result{}, &events.Error{Code: events.CodeBadArgs, Op: op, Msg: "the arguments have no JSON form", Err: err}
	}
	if len(frame) > t.pool.opts.MaxFrame {
		return tools.Result{}, &events.Error{Code: events.CodeTooLarge, Op: op, Msg: fmt.Sprintf(
			"the arguments and context variables take %d bytes, over the limit of %d", len(frame), t.pool.opts.MaxFrame)}
	}
	r, sent, err := t.send(ctx, op, id, frame, call)
	switch {
	case err != nil:
		return tools.Result{}, err
	case r.Error != nil:
		return tools.Result{}, r.Error.toError(op, sent)
	}
	result, err := r.result()
	if err != nil {
		return tools.Result{}, tools.Returned(&events.Error{Code: events.CodeToolError, Op: op, Msg: "its result cannot be used", Err: err})
	}
	return result, nil
}

// send runs the call in a child, and returns which errors the host has sent it. A child that ended
// before it entered the tool is replaced.
func (t *tool) send(
	ctx context.Context, op string, id uint64, frame []byte, call *tools.Call,
) (r *reply, sent map[events.Code]bool, err error) {
	g := t.group
	if !t.pool.begin(g) {
		return nil, nil, toolError(op, closing)
	}
	defer t.pool.end(g)
	key := t.file + ":" + t.function
	var last error
	for tries := 0; tries < maxTries; {
		c, err := g.acquire(ctx, op, key)
		if err != nil {
			return nil, nil, err
		}
		p := newPending(ctx, op, t.function, key, call)
		r, err := c.call(id, frame, p)
		switch {
		case errors.Is(err, errBusy): // it is not picked again until its loop runs
			continue
		case !errors.Is(err, errGone):
			return r, p.sentCodes, err
		}
		tries++
		last = err
	}
	return nil, nil, toolError(op, "%d Python processes of workflow %s ended before they entered the tool; the last: %v; "+
		"see the log for what they printed", maxTries, t.workflow, last)
}
