package handlers

import (
	"fmt"
	"sync"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// What the steps of a turn have used of the limits that are for all of them together. The compiler counts what a program contains;
// here is what is known only when a step starts: programs that are the value of a reference or that a planner writes, and values that
// are passed on again and again.

// maxCarried bounds the arguments and results of all steps of a turn, in bytes. The response of the turn has them all.
const maxCarried = 64 << 20

// usage is what the steps of a turn have used.
type usage struct {
	mu    sync.Mutex
	limit int // of calls
	calls int // of steps, in nested programs too
	bytes int // of their arguments and results
}

// usageOf returns what the stored steps of a turn have used; the turn is nil if nothing of it is stored.
func usageOf(t *idempotency.Turn) *usage {
	u := &usage{}
	if t == nil {
		return u
	}
	for _, c := range t.Steps() {
		if c.Called == nil {
			continue
		}
		if isStep(c.Key) {
			u.calls++
		}
		u.bytes += len(c.Called.Data)
		if e, err := events.ReadCall(c.Called.Data); err == nil {
			u.bytes += blobSize(e.Payload.ToolArgs)
		}
		if r := c.Response; r != nil {
			u.bytes += len(r.Data)
			if e := query.Response(r); e != nil {
				u.bytes += blobSize(e.Payload)
			}
		}
	}
	return u
}

// isStep reports whether a key is of a step, rather than of the turn or of what the product itself calls for a program.
func isStep(key subjects.Key) bool {
	id := subjects.StepOf(key.Call)
	return id != "" && !events.IsInternalStep(id)
}

func blobSize(stored any) int {
	blob, _ := events.BlobOf(stored)
	return blob.Size
}

// setLimit sets the limit of calls: the one of the turn's own program.
func (u *usage) setLimit(l flow.Limits) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit = l.WithDefaults().Calls
}

// left returns how many more calls may be made.
func (u *usage) left() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.limit - u.calls
}

// admit counts a step that is about to be called, and returns why its tool is not entered: refused, or a limit.
func (u *usage) admit(s *step, refused error) error {
	var err error
	if s.argsJSON, err = events.Canonicalize(s.args, 0); err != nil {
		refused = u.without(s, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes+len(s.argsJSON) > maxCarried {
		refused = u.without(s, &events.Error{Code: events.CodeTooLarge, Op: "program", Msg: fmt.Sprintf(
			"step %s: its arguments have %d bytes, and the arguments and results of all steps of a turn may have %d MiB: refer to less", s.call.ID, len(s.argsJSON), maxCarried>>20)})
	}
	if u.calls++; u.calls > u.limit && refused == nil {
		refused = &events.Error{Code: events.CodeGuardrail, Op: "program", Msg: fmt.Sprintf(
			"step %s: the turn has made %d calls, with the calls of nested programs, and its limit is %d", s.call.ID, u.calls-1, u.limit)}
	}
	u.bytes += len(s.argsJSON)
	return refused
}

// without takes the arguments from a step that cannot have them.
func (u *usage) without(s *step, why error) error {
	s.args, s.argsJSON = map[string]any{}, events.Canonical("{}")
	return why
}

// admitResult counts the result of a step, or makes it an error if it is too large together with what was stored before.
func (u *usage) admitResult(s *step, out *engine.Outcome) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if size := len(out.Payload); u.bytes+size > maxCarried {
		out.Status, out.Success, out.Code = events.StatusError, false, events.CodeTooLarge
		out.Content = fmt.Sprintf("Tool %s ran and its effect has happened, but its result of %d bytes is not stored: the arguments and results of all steps of a turn may have %d MiB.",
			s.Binding.Tool, size, maxCarried>>20)
		out.Message, out.Payload = out.Content, events.JSONOf(failure(out.Code, out.Content))
	}
	u.bytes += len(out.Payload)
}
