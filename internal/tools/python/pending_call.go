package python

import (
	"context"
	"sync"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/operation"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/tools"
)

// pending is a call that a child has taken.
type pending struct {
	op               string
	function         string
	key              string        // file:function
	tool, chat, turn string        // for log records
	enter            func()        // notifies the caller
	entered          chan struct{} // closed before the function runs
	done             chan outcome  // buffered, gets exactly one

	secrets *redact.SecretAnswers // secret answers of the call, nil when it cannot ask
	host    tools.Host            // nil when the caller has none
	call    context.Context       //nolint:containedctx // what the process asks for the call belongs to it
	halted  chan struct{}         // closed when the host ends the call; the cause of ctx is why
	work    sync.WaitGroup        // operations of the host
	reader  operation.Reader      // of operations; used by the reader of the process only

	slotMu        sync.Mutex // held while the call releases or takes its slot in the process; before the group's lock
	openQuestions int        // open questions
	slotReleased  bool       // it takes no slot
	over          bool       // it has ended

	// Guarded by the lock of the child.
	begun     bool                          // entered is closed
	startErr  error                         // it was not entered in time
	loading   *time.Timer                   // bounds the time until it is entered
	abandoned *time.Timer                   // set once the caller has gone
	overdue   bool                          // still runs after the grace of its cancellation
	async     bool                          // its function is
	closed    bool                          // no operation of the host begins any more
	halt      bool                          // halted is closed
	ctx       context.Context               //nolint:containedctx // of all operations of the host, nil before the first one
	stop      context.CancelCauseFunc       // ends ctx
	open      map[uint64]context.CancelFunc // operations of the host, until their replies are written
	sentCodes map[events.Code]bool          // codes of the errors that the host has sent it
}

func newPending(ctx context.Context, op, function, key string, call *tools.Call) *pending {
	return &pending{
		op: op, function: function, key: key, enter: call.Enter, host: call.Host, secrets: call.Secrets, call: ctx,
		tool: call.Name, chat: call.Turn.Chat, turn: call.CallID,
		entered: make(chan struct{}), halted: make(chan struct{}), done: make(chan outcome, 1),
	}
}

// hostContext is the context of all operations of the host. Most calls have none. The child's lock
// is held.
func (p *pending) hostContext() context.Context {
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

// ran reports whether the function was entered, and notifies the caller.
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
