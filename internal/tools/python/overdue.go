package python

import (
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
)

// overdueGrace is how long the other calls of a process may continue next to a call that does not end.
const overdueGrace = 30 * time.Second

// overdue ends a process in which an abandoned call still runs. Its other calls may end first,
// within overdueGrace.
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
		c.evict(p, reason)
		return
	}
	time.AfterFunc(overdueGrace, func() { c.evict(p, reason) })
	c.endSpent() // the other calls may have ended meanwhile
}

// evict ends the process because of one call, if that still runs.
func (c *child) evict(p *pending, reason string) {
	c.mu.Lock()
	found := c.has(p)
	c.evicted = c.evicted || found && c.reason == ""
	c.mu.Unlock()
	if found {
		c.kill(reason)
	}
}

// endSpent ends a process that runs only overdue calls.
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
		c.evict(late, "it was replaced because "+late.function+" did not end in time")
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
