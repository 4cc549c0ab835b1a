package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/limits"
	"github.com/oneturn/oneturn/internal/toolbox"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
	"github.com/oneturn/oneturn/subjects"
)

// workerTools is what a worker can call, and how it loads what names it.
type workerTools struct {
	*toolbox.Toolbox

	c       Config
	limiter atomic.Pointer[limits.Limiter] // nil before the worker runs
}

func newWorkerTools(nc *nats.Conn, space subjects.Space, c Config) (*workerTools, error) {
	golang := make(map[string]tools.Invoker, len(c.Tools))
	for _, t := range c.Tools {
		if t.Name == "" {
			return nil, errors.New("a tool in Config.Tools has no name: pass one to oneturn.NewTool as the first argument")
		}
		if _, twice := golang[t.Name]; twice {
			return nil, fmt.Errorf("two tools in Config.Tools are named %q: give each its own name", t.Name)
		}
		golang[t.Name] = t.Invoker
	}
	return &workerTools{c: c, Toolbox: toolbox.New(toolbox.Options{
		Go: golang, Conn: nc, Prefix: c.Prefix, MayReply: space.MayReply, Logger: c.Logger,
		Python: python.Options{
			Root: c.Workflows, Interpreter: c.Python.Interpreter, Size: c.Python.Children, Env: c.Python.Env,
			LoadTimeout: c.Python.LoadTimeout, Logger: c.Logger,
		},
	})}, nil
}

// options are what to load, and how to read Python files.
func (t *workerTools) options() bindings.Options {
	o := bindings.Options{
		Root: t.c.Workflows, Logger: t.c.Logger, Inspect: python.Inspector(t.c.Python.Interpreter),
		Variables: bindings.VariableSources{Env: t.c.ContextEnv, Files: t.c.ContextFiles},
	}
	o.Registered = make(map[string]bindings.Registered, len(t.c.Tools))
	for _, tool := range t.c.Tools {
		o.Registered[tool.Name] = tool.Types
		if tool.Declared != nil && tool.Declared.Workflow != "" {
			o.Declared = append(o.Declared, *tool.Declared)
		}
	}
	return o
}

// closeTimeout bounds how long the end of a worker waits for its tools.
const closeTimeout = 5 * time.Second

func (t *workerTools) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		t.c.Logger.Warn("tools did not end in time", "err", err)
	}
}
