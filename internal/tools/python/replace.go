package python

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/process"
	"github.com/oneturn/oneturn/internal/tools"
)

// When and how a child is replaced. A method of the child decides:
//
//   - startTimeout: it was not ready in time.
//   - stuck: it did not enter a call in time.
//   - overdue: a cancelled call has not returned within its grace.
//   - read (launch.go), call and stop: it broke the protocol of frames.
//   - failCalls: it has ended by itself.
//   - release with replace, withheld (output.go): it is worn out, for example by a parked run that continues.
//
// spare takes it out of use first, where its other calls may end; evict and kill end it. Its group has
// no spare child then: pick (child_group.go) starts another one for the next call, and send
// (pool.go) runs a call there that was not entered.

// startTimeout ends a process that does not get ready.
func (c *child) startTimeout() {
	err := c.launch.startError("start Python", fmt.Sprintf("it was not ready within %s", c.launch.load))
	c.mu.Lock()
	hangs := !c.ready && !c.ended
	if hangs {
		c.err = err
	}
	c.mu.Unlock()
	if hangs {
		c.kill("it was not ready in time")
	}
}

// stuck ends a process that does not enter a call in time.
func (c *child) stuck(p *pending) {
	c.mu.Lock()
	hangs := !p.begun
	if hangs {
		p.startErr = toolError(p.op, "%s was not entered within %s: its import takes longer, or another tool blocks the "+
			"event loop; the tool was not entered", p.function, c.launch.load)
	}
	c.mu.Unlock()
	if hangs {
		c.evict(p, p.function+" was not entered in time")
	}
}

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
	if !wait || !c.group.spare(c) {
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

// end lets an unused process run what was registered to run at exit, and kills it when that takes
// longer than two seconds.
func (c *child) end(reason string) {
	c.mu.Lock()
	gentle := c.ready && !c.ended && !c.ending
	if c.reason == "" {
		c.reason = reason
	}
	if gentle {
		c.ending = true
		close(c.quit)
	}
	c.mu.Unlock()
	if gentle {
		time.AfterFunc(exitGrace, func() { c.kill(reason) })
		return
	}
	c.kill(reason)
}

// kill ends the process group. Running calls get the first reason.
func (c *child) kill(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		c.reason = reason
	}
	if c.pid > 0 && !c.ended {
		process.KillGroup(c.pid)
	}
	if c.pid == 0 { // not started, or about to be: run and supervise check ended
		c.ended = true
		go c.start.Do(c.run)
	}
}

// spare retires a child without ending it: its calls end there. It refuses when as many retired
// children run already as may be in use.
func (g *group) spare(c *child) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.all[c]
	if s == nil || !s.retired && len(g.all)-len(g.current) >= g.size {
		return false
	}
	if !s.retired {
		g.counts.died.Add(1)
	}
	g.retire(s)
	g.dispatch()
	return true
}

// retire takes a child out of use. Idle ones are ended by the caller.
func (g *group) retire(s *slot) {
	s.retired = true
	g.current = slices.DeleteFunc(g.current, func(other *slot) bool { return other == s })
}

// exited records that a process has ended.
func (g *group) exited(c *child) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.all[c]
	if s == nil {
		return
	}
	if !s.retired {
		g.counts.died.Add(1)
	}
	g.retire(s)
	delete(g.all, c)
	if s.idle != nil {
		s.idle.Stop()
	}
	g.dispatch()
}

// failCalls ends every running call, because the process has ended.
func (c *child) failCalls(state *os.ProcessState, lastLine string) {
	c.group.exited(c)
	c.mu.Lock()
	if !c.ready && c.reason == "" {
		c.err = c.launch.startError("start Python", fmt.Sprintf("it ended (%s) before it could run a tool: %s", state, lastLine))
	}
	how, ends := exitText(state, c.reason), make(map[uint64]error, len(c.calls))
	for id, p := range c.calls {
		if c.lostFrames {
			p.begin() // perhaps: the frame may be lost
		}
		switch {
		case p.begun && !p.overdue && c.evicted:
			ends[id] = p.cutOff(how)
		case p.begun:
			ends[id] = tools.Unknown(toolError(p.op, "the Python process died (%s) while %s was running", how, p.function))
		case p.startErr != nil:
			ends[id] = p.startErr
		default: // another process may still run it
			ends[id] = fmt.Errorf("%w: %s", errGone, how)
		}
	}
	c.mu.Unlock()
	for id, err := range ends {
		c.finish(id, outcome{err: err})
	}
	close(c.gone)
}

func exitText(state *os.ProcessState, reason string) string {
	if reason != "" {
		return reason
	}
	if text := state.String(); text != "signal: killed" {
		return text
	}
	return "signal: killed, as the system does when memory runs out"
}
