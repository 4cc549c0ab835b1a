package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// A worker none of whose tools can run here takes no turns: in a pool it would end its share of them
// as tool_error, in place of workers that can run them.

// toolsRetry is the time between two checks of the tools.
const toolsRetry = 2 * time.Second

// awaitTools returns once a tool of the worker can run, or nothing is bound at all. Until then the
// worker is not ready.
func (w *Worker) awaitTools(ctx context.Context) error {
	for first := true; ; first = false {
		err := w.unrunnable(ctx)
		if err == nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if w.idle.Store(&err); first {
			w.c.Logger.Error("no turns are taken until a tool can run", "err", err)
		}
		if err := pause.For(ctx, toolsRetry); err != nil {
			return err
		}
		// Signatures are read by the interpreter that was missing.
		if set, err := bindings.Load(ctx, w.tools.options()); err == nil && !set.Equal(w.Bindings()) {
			w.adopt(set)
		}
	}
}

// unrunnable returns why none of the tools can run. Only Python can be missing as a whole: services
// and servers may come and go.
func (w *Worker) unrunnable(ctx context.Context) error {
	tried := map[string]bool{} // folders of workflows, each of which may have an interpreter
	var last error
	for _, b := range w.Bindings().Callable() {
		if b.Program != nil {
			continue // it needs the tools of its steps
		}
		if b.Kind != bindings.KindPython {
			return nil
		}
		if tried[b.Dir] {
			continue
		}
		tried[b.Dir] = true
		if last = python.ProbeWorkflow(ctx, w.c.Python.Interpreter, w.c.Workflows, b.Dir); last == nil {
			return nil
		}
	}
	if last == nil {
		return nil
	}
	return fmt.Errorf("none of the tools can run: %w", last)
}
