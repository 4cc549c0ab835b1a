package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/subjects"
)

// The times of [Workflows].
const (
	readEvery = 30 * time.Second
	readAgain = 500 * time.Millisecond // the least time between two reads
	patience  = 4 * time.Second        // of a caller for a read
)

// ErrUnknown means that no worker has announced a workflow.
var ErrUnknown = errors.New("unknown workflow")

// errNotRead is the error of a list that was not read in time.
var errNotRead = errors.New("the list of workflows has not been read yet")

// Workflows is the list of workflows, as the server had it at most half a minute ago. While no server answers it is the
// last one that was read. Make it with [NewWorkflows]; it is safe for concurrent use.
type Workflows struct {
	store  store
	space  subjects.Space
	logger *slog.Logger
	missed chan struct{}
	view   atomic.Pointer[view]
}

// view is what is known between two reads.
type view struct {
	list     []Workflow
	known    bool          // the list has been read, by this read or an earlier one
	began    time.Time     // the last read
	err      error         // why it failed
	replaced chan struct{} // closed when there is a newer view
}

// NewWorkflows returns the list of an installation. It does no I/O: [Workflows.Run] reads it.
func NewWorkflows(js jetstream.JetStream, space subjects.Space, logger *slog.Logger) *Workflows {
	return newWorkflows(&bucket{js, space}, space, logger)
}

func newWorkflows(s store, space subjects.Space, logger *slog.Logger) *Workflows {
	w := &Workflows{store: s, space: space, logger: logger, missed: make(chan struct{}, 1)}
	w.view.Store(&view{replaced: make(chan struct{})})
	return w
}

// Run reads the list until ctx ends: every 30 seconds, and within half a second when a workflow is not found. Only the first
// failure in a row is logged.
func (w *Workflows) Run(ctx context.Context) {
	for {
		w.read(ctx)
		if err := pause.For(ctx, readAgain); err != nil {
			return
		}
		next := time.NewTimer(readEvery - readAgain)
		select {
		case <-next.C:
		case <-w.missed:
		case <-ctx.Done():
		}
		next.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// read reads the list once. After a failure the list of before stays.
func (w *Workflows) read(ctx context.Context) {
	before, now := w.view.Load(), &view{began: time.Now(), replaced: make(chan struct{})}
	found, err := w.store.read(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		now.list, now.known, now.err = before.list, before.known, err
	default:
		now.list, now.known = w.decode(found.stored), true
	}
	switch {
	case err != nil && before.err == nil:
		w.logger.Warn("the list of workflows cannot be read; the last one counts, and it is tried again", "err", events.LogText(err), "workflows", len(now.list))
	case err == nil && before.err != nil:
		w.logger.Info("the list of workflows is read again", "workflows", len(now.list))
	}
	w.view.Store(now)
	close(before.replaced)
}

// decode returns the workflows of what is stored, without what no worker writes.
func (w *Workflows) decode(stored []entry) []Workflow {
	records := make([]record, 0, len(stored))
	for _, e := range stored {
		r, ok := decode(e.data)
		if ok && w.space.WorkflowSubject(r.Workflow, r.Pool) == e.subject {
			records = append(records, r)
		}
	}
	return join(records)
}

// Find returns a workflow by its name: the exact one, else the only one that differs from it in case at most, as workers find
// it. That a name is unknown is decided by a read that began after the call: it may have been announced just now. The error is
// [ErrUnknown], or why the list cannot be read, such as [ErrMissing]: whether there is such a workflow is not known then.
func (w *Workflows) Find(ctx context.Context, name string) (Workflow, error) {
	v, err := w.await(ctx, func(v *view) bool { return v.find(name) != nil })
	if found := v.find(name); found != nil {
		return found.clone(), nil
	}
	switch {
	case err != nil:
		return Workflow{}, fmt.Errorf("workflow %.80q is not in the last list, and a newer one cannot be read: %w", name, err)
	case v.err != nil:
		return Workflow{}, fmt.Errorf("workflow %.80q is not in the last list, and a newer one cannot be read: %w", name, v.err)
	}
	return Workflow{}, fmt.Errorf("%w %.80q: no worker has announced it", ErrUnknown, name)
}

// List returns all workflows, sorted by name. It fails only if none has been read yet.
func (w *Workflows) List(ctx context.Context) ([]Workflow, error) {
	v, err := w.await(ctx, func(v *view) bool { return v.known })
	if v.known {
		list := make([]Workflow, 0, len(v.list))
		for i := range v.list {
			list = append(list, v.list[i].clone())
		}
		return list, nil
	}
	if err == nil {
		err = v.err
	}
	return nil, fmt.Errorf("list workflows: %w", err)
}

// await returns the first view that is enough, or whose read began after the call. An error means that there was none in time.
func (w *Workflows) await(ctx context.Context, enough func(*view) bool) (*view, error) {
	start := time.Now()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		v := w.view.Load()
		if enough(v) || v.began.After(start) {
			return v, nil
		}
		select {
		case w.missed <- struct{}{}:
		default: // it is about to be read
		}
		select {
		case <-v.replaced:
		case <-late.C:
			return v, errNotRead
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}

// find returns a workflow, nil if there is none.
func (v *view) find(name string) *Workflow {
	name = events.Name(name)
	at, exact := slices.BinarySearchFunc(v.list, name, func(w Workflow, name string) int { return strings.Compare(w.Name, name) })
	if exact {
		return &v.list[at]
	}
	var found *Workflow
	for i := range v.list {
		switch {
		case !strings.EqualFold(v.list[i].Name, name):
		case found != nil:
			return nil // the name is ambiguous
		default:
			found = &v.list[i]
		}
	}
	return found
}

func (w Workflow) clone() Workflow {
	w.Pools = slices.Clone(w.Pools)
	return w
}
