package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/oneturn/oneturn/internal/tools"
)

// activeCall is a call that a session carries.
type activeCall struct {
	ctx        context.Context //nolint:containedctx // the call's, for requests of the server while it runs
	stop       context.CancelCauseFunc
	call       *tools.Call
	op         string
	token      string        // of its progress
	link       link          // of the session that carries it
	cancelSent chan struct{} // closed when the server was notified that the call is cancelled

	mu           sync.Mutex
	begun        bool // the server may have the request
	slotReleased bool // it waits for an answer
	questions    int
	cancelOnce   sync.Once
	refused      error           // the server has reported that nothing has happened
	gone         bool            // the server does not know the session any more
	stale        bool            // it may not: the session is not used again
	lost         bool            // the session broke while it carried the call
	exact        json.RawMessage // structuredContent as it was written
}

// redact replaces the secrets that the server got in what it reports.
func (u *activeCall) redact(text string) string {
	if u.link == nil {
		return text
	}
	return u.link.secrets().Text(text)
}

func (u *activeCall) cancelled() bool { return u.ctx != nil && u.ctx.Err() != nil }

// sent notes that the server may have the request, or has it for certain not.
func (u *activeCall) sent(is bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.begun = is
}

// wrote looks at a message for the server.
func (u *activeCall) wrote(msg []byte) {
	if bytes.Contains(msg, []byte(`"method":"notifications/cancelled"`)) {
		u.cancelOnce.Do(func() { close(u.cancelSent) })
	}
}

// set sets one of the flags of the call.
func (u *activeCall) set(flag *bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	*flag = true
}

// activeCall returns the call of the session; nil between calls.
func (s *session) activeCall() *activeCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.call
}
