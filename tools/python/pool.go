package python

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tools"
)

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
	groups map[string]*group
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
	return &Pool{opts: opts, groups: map[string]*group{}}
}

// Tool returns the tool that runs a function of a Python file. The file is named relative to
// the workflow's folder, to its tools folder, or to Root; it is looked up at the first call.
func (p *Pool) Tool(workflow, file, function string) tools.Tool {
	return &tool{pool: p, workflow: workflow, file: filepath.ToSlash(file), function: function}
}

// Renew lets the next call of a workflow run in a new process. Calls that run are not
// disturbed. New processes take the Python files of the workflow's folder from sources, which
// are named relative to it, whatever is on the disk by then; what sources lacks, and all if
// they are nil, they read from the disk.
func (p *Pool) Renew(workflow string, sources map[string][]byte) {
	p.group(workflow).renew(sources)
}

// Close refuses new calls and waits for the running ones; when ctx ends first it kills their
// processes and returns an error. No process of the pool is left when it returns.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	groups := make([]*group, 0, len(p.groups))
	for _, g := range p.groups {
		groups = append(groups, g)
	}
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
	for _, g := range p.groups {
		g.mu.Lock()
		stats.Children += len(g.all)
		stats.Waiting += len(g.waiters)
		for _, s := range g.all {
			stats.Running += s.load
		}
		g.mu.Unlock()
	}
	return stats
}

// group returns the children of a workflow.
func (p *Pool) group(workflow string) *group {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[workflow]
	if g == nil {
		g = newGroup(p.opts.Size, p.opts.IdleAfter, &p.counts, func(g *group) *child { return p.child(g, workflow) })
		g.closed = p.closed
		p.groups[workflow] = g
	}
	return g
}

func (p *Pool) child(g *group, workflow string) *child {
	c := newChild(launch{
		workflow: workflow, root: p.opts.Root, python: p.opts.Interpreter, allow: p.opts.Env,
		maxFrame: p.opts.MaxFrame, maxMem: p.opts.MaxMemory, grace: p.opts.Grace,
		load: p.opts.LoadTimeout, sources: g.sources,
	}, p.opts.Logger.With("workflow", workflow))
	c.async, c.release, c.spare, c.exited = g.learn, g.release, g.spare, g.exited
	return c
}

// tool is one Python function.
type tool struct {
	pool                     *Pool
	workflow, file, function string
}

// Queues implements [tools.Queuer]: a call waits for a process and for the import of its file.
func (*tool) Queues() bool { return true }

// Invoke implements [tools.Tool].
func (t *tool) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	op := "call Python tool " + t.function
	if ctx.Err() != nil {
		return tools.Result{}, ended(ctx, op, "before the call; the tool was not entered")
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
	r, err := t.send(ctx, op, id, frame, call)
	switch {
	case err != nil:
		return tools.Result{}, err
	case r.Error != nil:
		return tools.Result{}, r.Error.toError(op)
	}
	result, err := r.result()
	if err != nil {
		return tools.Result{}, &events.Error{Code: events.CodeToolError, Op: op, Msg: "its result cannot be used", Err: err}
	}
	return result, nil
}

// send has a child run the call. A child that ended before it entered the tool is replaced.
func (t *tool) send(ctx context.Context, op string, id uint64, frame []byte, call *tools.Call) (*reply, error) {
	g := t.pool.group(t.workflow)
	key := t.file + ":" + t.function
	var last error
	for range maxTries {
		c, err := g.acquire(ctx, op, key)
		if err != nil {
			return nil, err
		}
		r, err := c.call(ctx, id, frame, newPending(op, t.function, key, call))
		if !errors.Is(err, errGone) {
			return r, err
		}
		last = err
	}
	return nil, toolError(op, "%d Python processes of workflow %s ended before they entered the tool; the last: %v; "+
		"see the log for what they printed", maxTries, t.workflow, last)
}
