package python

import (
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
)

// maxLinger is how long the neighbours of a call that does not end may go on.
const maxLinger = 30 * time.Second

// overdue ends a process in which an abandoned call goes on. The calls beside it may end first:
// they have their own time, though not for ever.
func (c *child) overdue(p *pending) {
	reason := "it was replaced because " + p.function + " did not end in time"
	c.mu.Lock()
	if !c.has(p) {
		c.mu.Unlock()
		return // it ended at the same moment
	}
	p.overdue = true
	wait := p.begun && c.busy() // a call that was not even entered shows that nothing runs there
	c.mu.Unlock()
	if !wait || !c.spare(c) {
		c.sacrifice(p, reason)
		return
	}
	time.AfterFunc(maxLinger, func() { c.sacrifice(p, reason) })
	c.endSpent() // the neighbours may have ended meanwhile
}

// sacrifice ends the process because of one call, if that still runs.
func (c *child) sacrifice(p *pending, reason string) {
	c.mu.Lock()
	found := c.has(p)
	c.sacrificed = c.sacrificed || found && c.reason == ""
	c.mu.Unlock()
	if found {
		c.kill(reason)
	}
}

// endSpent ends a process that only overdue calls keep.
func (c *child) endSpent() {
	c.mu.Lock()
	var late *pending
	for _, p := range c.calls {
		if p.overdue {
			late = p
		}
	}
	spent := late != nil && !c.busy()
	c.mu.Unlock()
	if spent {
		c.sacrifice(late, "it was replaced because "+late.function+" did not end in time")
	}
}

// has reports whether a call is not finished. The caller holds the lock.
func (c *child) has(call *pending) bool {
	for _, p := range c.calls {
		if p == call {
			return true
		}
	}
	return false
}

// busy reports whether a call runs that is not overdue. The caller holds the lock.
func (c *child) busy() bool {
	for _, p := range c.calls {
		if p.begun && !p.overdue {
			return true
		}
	}
	return false
}

// cutOff describes a call that was running when the process was ended because of another one.
func (p *pending) cutOff(how string) error {
	return &events.Error{Code: events.CodeInterrupted, Op: p.op, Msg: fmt.Sprintf(
		"%s was cut off when its Python process was ended (%s): its effect may or may not have happened", p.function, how)}
}
