package mcptool

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// The sessions of one server: acquire and release lend them to calls, start begins one (in a different way after a
// failure: handshake.go), failed delays the next start, close ends all of them.

const (
	maxWaiting   = 64 // calls that wait for an answer on a separate session and take no slot
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 30 * time.Second
)

// server is one MCP server and its sessions.
type server struct {
	key   string
	to    *target.MCPServer
	o     Options
	log   *slog.Logger
	reach transporter
	tools int // that use it; guarded by Servers.mu

	slots   chan struct{} // one entry for each active call
	closing chan struct{} // closed when no more calls are taken
	ends    sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	idle      []*session // the latest is the last
	open      map[*session]struct{}
	waiting   int       // calls that have released their slot
	failures  int       // starts that failed and sessions that died in a call, since a call went well
	notBefore time.Time // no start before
	last      error     // of the starts
	begins    handshake // how the next session begins
	started   uint64
	died      uint64
}

func newServer(key string, to *target.MCPServer, o Options) *server {
	slots := to.Sessions
	if slots <= 0 {
		slots = 1
		if len(to.Command) == 0 {
			slots = 8
		}
	}
	s := &server{
		key: key, to: to, o: o, log: o.Logger.With("server", to.Name), slots: make(chan struct{}, slots), closing: make(chan struct{}),
		open: map[*session]struct{}{},
	}
	if len(to.Command) > 0 {
		s.reach = stdio{s}
	} else {
		s.reach = newHTTPTransport(s)
	}
	return s
}

// acquire returns a session for one call, which ends with release.
func (s *server) acquire(ctx context.Context, op string) (*session, error) {
	const when = "before a session of its server was free; the tool was not entered"
	if ctx.Err() != nil {
		return nil, tools.Ended(ctx, op, when)
	}
	select {
	case s.slots <- struct{}{}:
	case <-s.closing:
		return nil, s.over(op)
	case <-ctx.Done():
		return nil, tools.Ended(ctx, op, when)
	}
	one, err := s.take(ctx, op)
	if err != nil {
		<-s.slots
	}
	return one, err
}

func (s *server) over(op string) error {
	return tools.Retryable(failf(events.CodeToolError, op, "MCP server %s is not used any more; the tool was not entered", s.to.Name))
}

// take returns an idle session, or starts one. A server that does not start is not started again for a
// while: calls that come meanwhile get the error of the last try.
func (s *server) take(ctx context.Context, op string) (*session, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, s.over(op)
	}
	for n := len(s.idle); n > 0; n = len(s.idle) {
		one := s.idle[n-1]
		s.idle = s.idle[:n-1]
		if one.use() {
			s.mu.Unlock()
			return one, nil
		}
	}
	rest, last, failures := time.Until(s.notBefore), s.last, s.failures
	s.mu.Unlock()
	if rest > 0 && last != nil {
		return nil, tools.RetryAfter(failf(events.CodeToolError, op, "MCP server %s is not called for now, after %s in a row; the tool was not entered; "+
			"its last failure: %v", s.to.Name, failureCount(failures), last), rest)
	}
	one, err := s.start(ctx, op)
	if err != nil && ctx.Err() == nil {
		s.failed(err, 0)
		return nil, tools.Retryable(err)
	}
	return one, err
}

func failureCount(n int) string {
	if n == 1 {
		return "1 failure"
	}
	return fmt.Sprintf("%d failures", n)
}

// failed records that a session could not start, or died in a call. The first free failures in a row cause
// no delay.
func (s *server) failed(err error, free int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	s.last = err
	if over := s.failures - free; over > 0 {
		s.notBefore = time.Now().Add(min(firstBackoff<<min(over-1, 10), maxBackoff)) //nolint:mnd // beyond maxBackoff
	}
}

// start starts a session and reads its tools. A server that fails at how the session begins gets
// another that begins differently.
func (s *server) start(ctx context.Context, op string) (*session, error) {
	within, cancel := context.WithTimeout(ctx, s.o.StartTimeout)
	defer cancel()
	for tries := 1; ; tries++ {
		one, err, again := s.begin(ctx, within, op)
		if err == nil || !again || tries == maxHandshakes || within.Err() != nil {
			return one, err
		}
		s.log.Debug("MCP session begins differently", "err", err)
	}
}

// maxHandshakes is how many ways there are to begin a session.
const maxHandshakes = 3

// begin starts a session; again is whether one that begins differently may succeed.
func (s *server) begin(ctx, within context.Context, op string) (_ *session, failed error, again bool) { //nolint:revive // again is about the error
	one := &session{server: s, over: make(chan struct{})}
	s.mu.Lock()
	one.begins = s.begins
	if s.closed {
		s.mu.Unlock()
		return nil, s.over(op), false
	}
	s.ends.Add(1)
	s.mu.Unlock()
	err := one.connect(within)
	s.mu.Lock()
	s.begins, again = one.probe.next(one.begins, err != nil, protocolError(err) != nil)
	s.mu.Unlock()
	if err == nil {
		err = one.list(within)
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			s.open[one] = struct{}{}
			s.started++
			s.log.Debug("MCP session started", "protocol", one.protocol(), "tools", len(one.tools))
			return one, nil, false
		}
		err = s.over(op)
	}
	text := strings.TrimSuffix(one.explain(err), ": "+outbound.Unknown) // nothing was called
	one.end(0, nil)
	switch {
	case ctx.Err() != nil:
		return nil, tools.Ended(ctx, op, fmt.Sprintf("while MCP server %s started; the tool was not entered", s.to.Name)), false
	case within.Err() != nil:
		text = fmt.Sprintf("it was not ready within %s", s.o.StartTimeout)
	}
	return nil, failf(events.CodeToolError, op, "MCP server %s cannot be used: %s; the tool was not entered; %s", s.to.Name, text, s.reach.fix()), again
}

// release ends the use of a session, which is kept if it is good for another call.
func (s *server) release(one *session, good bool) {
	u := one.leave()
	s.mu.Lock()
	if u.slotReleased {
		s.waiting--
	} else {
		<-s.slots
	}
	good = good && !s.closed && len(s.idle) < cap(s.slots)
	if good {
		s.failures, s.last, s.notBefore = 0, nil, time.Time{}
		if good = one.wait(); good {
			s.idle = append(s.idle, one)
		}
	}
	s.mu.Unlock()
	switch {
	case good:
	case u.cancelled():
		s.forget(one)
		one.end(s.o.Grace, u.cancelSent) // the server may want to end its work
	default:
		s.forget(one)
		one.end(0, nil)
	}
}

// broke records that a connection ended by itself.
func (s *server) broke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.died++
}

// forget takes a session out of use.
func (s *server) forget(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, one)
	for i, o := range s.idle {
		if o == one {
			s.idle = append(s.idle[:i], s.idle[i+1:]...)
			break
		}
	}
}

// addSlot lets another call run while one waits for an answer; false if too many do.
func (s *server) addSlot() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting >= maxWaiting {
		return false
	}
	s.waiting++
	<-s.slots
	return true
}

// close ends all sessions; the sessions of active calls when these have ended, or ctx has.
func (s *server) close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, one := range idle {
		s.forget(one)
		one.end(s.o.Grace, nil)
	}
	done := make(chan struct{})
	go func() {
		s.ends.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	n := len(s.open)
	for one := range s.open {
		one.link.kill()
	}
	s.mu.Unlock()
	<-done
	if n == 0 {
		return nil
	}
	return fmt.Errorf("close MCP server %s: %d calls were cut off: %w", s.to.Name, n, ctx.Err())
}
