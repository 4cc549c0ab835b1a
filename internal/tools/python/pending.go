package python

import (
	"context"
	"sync"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/operation"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/tools"
)

// pending is a call that a child has taken.
type pending struct {
	op               string
	function         string
	key              string        // file:function
	tool, chat, turn string        // for log records
	enter            func()        // tells the caller
	entered          chan struct{} // closed before the function runs
	done             chan outcome  // buffered, gets exactly one

	secrets *secrets.Scrubber // what the call was handed, nil when it can ask nobody
	desk    tools.Host        // nil when the caller has none
	call    context.Context   //nolint:containedctx // what the process asks for the call belongs to it
	halted  chan struct{}     // closed when the call is stopped at its desk; ctx says why
	work    sync.WaitGroup    // operations at the desk
	reader  operation.Reader  // of what it wants there; the reader's of the process

	room sync.Mutex // held while the call leaves or takes room in its process; before the group's lock
	asks int        // open questions
	away bool       // it takes no room
	over bool       // it has ended

	// Guarded by the lock of the child.
	begun     bool                          // entered is closed
	late      error                         // it was not entered in time
	loading   *time.Timer                   // bounds the time until it is entered
	abandoned *time.Timer                   // set once the caller has gone
	overdue   bool                          // still runs after the grace of its cancellation
	async     bool                          // its function is
	closed    bool                          // nothing begins at the desk any more
	halt      bool                          // halted is closed
	ctx       context.Context               //nolint:containedctx // of everything at the desk, nil before the first use
	stop      context.CancelCauseFunc       // ends ctx
	open      map[uint64]context.CancelFunc // operations at the desk, until their replies are written
	told      map[events.Code]bool          // codes of the errors that the desk has given it
}

func newPending(ctx context.Context, op, function, key string, call *tools.Call) *pending {
	return &pending{
		op: op, function: function, key: key, enter: call.Enter, desk: call.Host, secrets: call.Secrets, call: ctx,
		tool: call.Name, chat: call.Turn.Chat, turn: call.CallID,
		entered: make(chan struct{}), halted: make(chan struct{}), done: make(chan outcome, 1),
	}
}

// atDesk is the context of everything at the desk. Most calls have no use for it. The child's lock
// is held.
func (p *pending) atDesk() context.Context {
	if p.ctx == nil {
		p.ctx, p.stop = context.WithCancelCause(p.call)
	}
	return p.ctx
}

// begin marks the call as entered.
func (p *pending) begin() {
	if !p.begun {
		p.begun = true
		p.loading.Stop()
		close(p.entered)
	}
}

// ran reports whether the function was entered, and tells the caller.
func (p *pending) ran() bool {
	select {
	case <-p.entered:
		p.enter()
		return true
	default:
		return false
	}
}

// outcome is how a call ended: a reply, or an error of the process around it.
type outcome struct {
	reply *reply
	err   error
}
