package toolbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// Options of a [Toolbox].
type Options struct {
	// Go holds the functions that the program has registered, by name.
	Go map[string]tools.Invoker
	// Python are the options of Python tools. Without a Root there are none.
	Python python.Options
	// Conn reaches NATS services. Without it there are none.
	Conn *nats.Conn
	// Prefix of the product's own subjects, where no tool is. Defaults to [subjects.DefaultPrefix].
	Prefix string
	// MayReply reports whether a message of a NATS service may be replied to on a subject that the
	// service names. Nil takes inboxes only, see [subjects.Space.MayReply].
	MayReply func(subject string) bool
	// Logger gets ids and sizes, never payloads.
	Logger *slog.Logger
}

// Toolbox finds tools. It is safe for concurrent use.
type Toolbox struct {
	o        Options
	python   *python.Pool // nil without a workflow folder
	mcp      *mcptool.Servers
	registry *registry

	subjects natstool.Subjects // of services, for as long as the worker runs
}

// New returns a toolbox. It starts nothing.
func New(o Options) *Toolbox {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Toolbox{o: o, mcp: mcptool.NewServers(mcptool.Options{Logger: o.Logger})}
	b.registry = newRegistry(b.make, o.Logger)
	if o.Python.Root != "" {
		b.python = python.NewPool(o.Python)
	}
	return b
}

// Find returns the tool of a binding, whether or not its set is still active. It does not wait.
func (b *Toolbox) Find(binding *bindings.Binding) (tools.Invoker, error) {
	switch binding.Kind {
	case bindings.KindGo:
		if t, ok := b.o.Go[binding.Tool]; ok {
			return t, nil
		}
		return nil, unknown("Go tool %q of workflow %s is not part of this worker: register it with oneturn.NewTool", binding.Tool, binding.Workflow)
	case bindings.KindPython:
		if b.python != nil {
			return b.python.Tool(binding.Dir, binding.File, binding.Function), nil
		}
	case bindings.KindNATS, bindings.KindMCP, bindings.KindHTTP, bindings.KindAgent:
		if err := b.reaches(binding); err != nil {
			return nil, err
		}
		return b.registry.find(binding), nil
	case bindings.KindPlan, bindings.KindOrchestrate:
	}
	return nil, unknown("this worker runs no %s tools", binding.Kind)
}

func unknown(format string, args ...any) error {
	return &events.Error{Code: events.CodeUnknownTool, Op: "find tool", Msg: fmt.Sprintf(format, args...)}
}

// Adopt takes over a set of bindings: what it names is kept from now on, what only the old one
// names ends once the calls under way have ended. Turns that have found their tool keep it. old
// is nil at the start.
func (b *Toolbox) Adopt(old, set *bindings.Set) {
	b.renew(old, set)
	b.registry.adopt(set.Callable())
}

// renew activates the Python files that the set was checked with, for workflows whose code
// or manifests have changed.
func (b *Toolbox) renew(old, set *bindings.Set) {
	if b.python == nil {
		return
	}
	dirs := map[string]string{} // of workflows, by folder
	note := func(s, other *bindings.Set) {
		for _, binding := range s.Callable() {
			if binding.Kind == bindings.KindPython && (other == nil || binding.Digest != other.WorkflowDigest(binding.Workflow)) {
				dirs[binding.Dir] = binding.Workflow
			}
		}
	}
	note(set, old)
	if old != nil {
		note(old, set) // also those that have no Python tools any more
	}
	for dir, workflow := range dirs {
		b.python.Renew(dir, set.Sources(workflow))
	}
}

// discoverEvery is how often tools that could not be asked about themselves are asked again.
const discoverEvery = 30 * time.Second

// Discover asks tools that are trusted to report their effect until they have, and until
// ctx ends. Before they have, they have the effect of their kind.
func (b *Toolbox) Discover(ctx context.Context) {
	tick := time.NewTicker(discoverEvery)
	defer tick.Stop()
	for {
		select {
		case <-b.registry.changed: // what has changed before is asked now
		default:
		}
		b.registry.discover(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-b.registry.changed:
		}
	}
}

// PythonStats returns the state of the Python processes.
func (b *Toolbox) PythonStats() python.Stats {
	if b.python == nil {
		return python.Stats{}
	}
	return b.python.Stats()
}

// MCPStats returns the state of the sessions with MCP servers.
func (b *Toolbox) MCPStats() mcptool.Stats { return b.mcp.Stats() }

// Close ends all processes and connections of tools, once the calls under way have ended or ctx
// has. Nothing can be called afterwards.
func (b *Toolbox) Close(ctx context.Context) error {
	var ends sync.WaitGroup
	var errRegistry, errPython error
	ends.Go(func() { errRegistry = b.registry.close(ctx) })
	if b.python != nil {
		errPython = b.python.Close(ctx)
	}
	ends.Wait()
	if errPython != nil {
		return fmt.Errorf("close Python processes: %w", errPython)
	}
	return errRegistry
}
