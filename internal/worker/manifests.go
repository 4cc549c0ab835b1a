package worker

import (
	"context"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/catalog"
)

// adopt activates a set of bindings and passes the tools that it names to the toolbox.
func (w *Worker) adopt(set *bindings.Set) {
	old := w.set.Swap(set)
	if old == nil {
		w.tools.Adopt(nil, set)
		return // the caller of New has the diagnostics in Bindings
	}
	for _, c := range bindings.Causes(set.Diagnostics()) {
		if c.Severity == diag.SeverityError {
			w.c.Logger.Warn("manifest error", "diagnostic", c.String())
		}
	}
	w.tools.Adopt(old, set)
	w.catalog.Changed()
}

// workflows are those that the worker announces.
func (w *Worker) workflows() []catalog.Workflow {
	set := w.Bindings()
	list := make([]catalog.Workflow, 0, len(set.Workflows()))
	for _, name := range set.Workflows() {
		list = append(list, catalog.Workflow{Name: name, Description: set.Description(name), Agents: len(set.Agents(name))})
	}
	return list
}

// watch follows changes of the workflow folder.
func (w *Worker) watch(ctx context.Context) {
	if !w.c.Watch || w.c.Workflows == "" {
		return
	}
	options := w.tools.options()
	options.From = w.Bindings()
	err := bindings.Watch(ctx, options, func(set *bindings.Set, err error) {
		if err != nil {
			w.c.Logger.Error("the workflow folder cannot be read; the bindings stay as they are", "err", err)
		}
		old := w.Bindings()
		switch {
		case set == nil || set.Equal(old):
		case set.Digest() == old.Digest(): // an edit that was refused, or one that was taken back
			w.adopt(set)
			w.c.Logger.Info("workflows unchanged", "errors", set.Errors(), "digest", set.Digest())
		default:
			w.adopt(set)
			w.c.Logger.Info("workflows changed", "workflows", len(set.Workflows()), "digest", set.Digest())
		}
	})
	if err != nil && ctx.Err() == nil {
		w.c.Logger.Error("the workflow folder is not watched", "err", err)
	}
}
