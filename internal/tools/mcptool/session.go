package mcptool

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/redact"
)

// One connection to a server, from connect to end. A transporter opens its link: a process (stdio_transport.go) or
// HTTP (http_transport.go). The SDK is called by async only (sdk_call.go).

const (
	maxTools      = 4096            // that a server may have
	maxPages      = 1000            // of its list of them
	maxCursor     = 4 << 10         // bytes of what names the next page
	maxListBytes  = 16 << 20        // bytes of their descriptions
	cancelTimeout = time.Second     // for a server to be notified of a cancelled call
	endWithin     = 5 * time.Second // for what may take a while at the end of a session
)

// transporter reaches a server.
type transporter interface {
	// open makes the way for a session, and what has to be closed.
	open(ctx context.Context, s *session) (link, error)
	// fix is what to do about a server that cannot be used.
	fix() string
}

// link is the way to a server that one session has.
type link interface {
	mcp.Transport

	// end closes it once the session is closed. A process has grace to end by itself.
	end(grace time.Duration)
	// drop is called before a session is closed that is not used any more.
	drop()
	// kill cuts it.
	kill()
	// reason is why it is cut, or what its process has printed last; "" if unknown.
	reason() string
	// explain is why the session failed if there is no reason.
	explain(err error) string
	// secrets are the secrets that the server got.
	secrets() redact.Set
	// tooLarge reports whether a message of the server was too large.
	tooLarge() bool
}

// session is one session with a server. It carries one call at a time.
type session struct {
	server *server
	begins handshake
	probe  probe
	link   link
	client *mcp.ClientSession
	over   chan struct{} // closed when the connection is over

	mu    sync.Mutex
	ended bool
	call  *activeCall // nil between calls
	timer *time.Timer
	wants int // requests of the server that have no answer yet
	tools map[string]*described
	stale bool // the server has reported that its tools have changed

	last    json.RawMessage // id of the last request for the server
	garbled string          // why an answer of the server could not be read
}

// connect opens the connection and agrees on the protocol.
func (s *session) connect(ctx context.Context) error {
	var err error
	if s.begins == probing {
		s.probe.within = s.server.o.ProbeTimeout
	}
	defer s.probe.stop()
	if s.link, err = s.server.reach.open(ctx, s); err != nil {
		return err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "oneturn", Version: version()}, &mcp.ClientOptions{
		// Questions only: no samples of models, and no files.
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		},
		ElicitationHandler:     s.elicit,
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { s.changed() },
		MultiRoundTrip:         &mcp.MultiRoundTripOptions{Disabled: true},
	})
	done := async(func() (*mcp.ClientSession, error) {
		var o mcp.ClientSessionOptions
		if s.begins == legacy {
			o.ProtocolVersion = legacyProtocol
		}
		return client.Connect(ctx, s.link, &o)
	})
	var c returned[*mcp.ClientSession]
	select {
	case c = <-done:
	case <-ctx.Done(): // it may not look at its context
		s.link.kill()
		c = <-done
	}
	if c.err != nil {
		return c.err
	}
	s.client = c.value
	go s.watch()
	return nil
}

// watch waits for the end of the connection.
func (s *session) watch() {
	_ = s.client.Wait()
	close(s.over)
	s.mu.Lock()
	ours, idle := s.ended, s.call == nil
	s.mu.Unlock()
	if ours {
		return
	}
	s.server.broke()
	if idle { // else the call sees it
		s.server.forget(s)
		s.end(0, nil)
	}
}

// protocol is the version that both sides speak.
func (s *session) protocol() string { return s.client.InitializeResult().ProtocolVersion }

func (s *session) alive() bool {
	select {
	case <-s.over:
		return false
	default:
		return true
	}
}

// use takes an idle session into use; false if it is over.
func (s *session) use() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil && !s.timer.Stop() {
		return false // it is being ended
	}
	s.timer = nil
	return s.alive()
}

// wait lets the session wait for the next call; false if it is over.
func (s *session) wait() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.alive() {
		return false
	}
	s.timer = time.AfterFunc(s.server.o.IdleAfter, func() {
		s.server.forget(s)
		s.end(s.server.o.Grace, nil)
	})
	return true
}

// leave ends the call of the session and returns it, an empty one if there was none.
func (s *session) leave() *activeCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.call
	s.call = nil
	if u == nil {
		return &activeCall{}
	}
	return u
}

// end closes the session, in the background. It waits a little for after, if that is given.
func (s *session) end(grace time.Duration, after <-chan struct{}) {
	s.mu.Lock()
	ended := s.ended
	s.ended = true
	s.mu.Unlock()
	if !ended {
		go s.close(grace, after)
	}
}

func (s *session) close(grace time.Duration, after <-chan struct{}) {
	defer s.server.ends.Done()
	if s.link == nil {
		return
	}
	if after != nil {
		select {
		case <-after:
		case <-s.over:
		case <-time.After(cancelTimeout):
		}
	}
	if grace == 0 {
		s.link.drop()
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		defer func() { _ = recover() }() // at the end nothing is lost
		if s.client != nil {
			_ = s.client.Close()
		}
	}()
	select {
	case <-closed:
	case <-time.After(endWithin):
		s.link.kill()
	}
	s.link.end(grace)
	<-closed
	s.server.log.Debug("MCP session ended")
}

// explain is why the session failed.
func (s *session) explain(err error) string {
	if version, is := strings.CutPrefix(err.Error(), "unsupported protocol version: "); is && s.link != nil {
		return "it speaks the protocol version " + excerpt.Line(s.link.secrets().Text(version), maxText) +
			", this worker the versions from 2024-11-05 to 2026-07-28: use another version of the server"
	}
	if garbled := s.unreadableReason(); garbled != "" {
		return garbled
	}
	if s.link != nil {
		if why := s.link.reason(); why != "" {
			return why
		}
		return s.link.explain(err)
	}
	return excerpt.Line(err.Error(), maxText)
}
