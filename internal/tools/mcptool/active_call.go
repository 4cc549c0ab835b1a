package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/internal/excerpt"
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

// activeCall returns the call of the session; nil between calls.
func (s *session) activeCall() *activeCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.call
}

// maxWanted is how many requests of a server may have no answer yet: the SDK keeps them all, and a
// server that only asks would fill the memory.
const maxWanted = 256

// tooMuchWanted is why a session with such a server ends.
const tooMuchWanted = "it sends requests faster than it reads the answers"

// saw looks at a message of the server before the SDK does. It reports false if the session has to
// end for it.
func (s *session) saw(msg []byte) bool {
	s.look(msg)
	if !bytes.Contains(msg, []byte(`"method"`)) || !bytes.Contains(msg, []byte(`"id"`)) {
		return true
	}
	requests, _ := kinds(msg)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wants += requests
	return s.wants <= maxWanted
}

// answered looks at a message for the server: it may answer what the server wants.
func (s *session) answered(msg []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wants > 0 {
		_, answers := kinds(msg)
		s.wants = max(s.wants-answers, 0)
	}
}

// kinds counts the requests and the answers of a message, or of several in a list.
func kinds(msg []byte) (requests, answers int) {
	type one struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	all := make([]one, 1)
	var err error
	if bytes.HasPrefix(bytes.TrimSpace(msg), []byte("[")) {
		err = json.Unmarshal(msg, &all)
	} else {
		err = json.Unmarshal(msg, &all[0])
	}
	if err != nil {
		return 0, 0
	}
	for _, m := range all {
		switch {
		case m.ID == nil:
		case m.Method == "":
			answers++
		default:
			requests++
		}
	}
	return requests, answers
}

// look looks for progress, in the order in which it came and never after the answer, and for
// results digit by digit, which the SDK rounds.
func (s *session) look(msg []byte) {
	progress := bytes.Contains(msg, []byte(`"notifications/progress"`))
	if !progress && !bytes.Contains(msg, []byte(`"structuredContent"`)) {
		return
	}
	u := s.activeCall()
	if u == nil {
		return
	}
	var m struct {
		Method string                         `json:"method"`
		Params mcp.ProgressNotificationParams `json:"params"`
		Result struct {
			StructuredContent json.RawMessage `json:"structuredContent"` //nolint:tagliatelle // as the protocol names it
		} `json:"result"`
	}
	if json.Unmarshal(msg, &m) != nil {
		return
	}
	switch {
	case m.Method == "notifications/progress" && m.Params.ProgressToken == u.token:
		u.progress(&m.Params)
	case m.Method == "" && m.Result.StructuredContent != nil:
		u.mu.Lock()
		u.exact = bytes.Clone(m.Result.StructuredContent)
		u.mu.Unlock()
	}
}

// structured returns the structured content of the result as the server wrote it; nil if it has
// none.
func (u *activeCall) structured() json.RawMessage {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.exact
}

// progress reports how far the call is.
func (u *activeCall) progress(p *mcp.ProgressNotificationParams) {
	if u.call.Host == nil || u.ctx.Err() != nil {
		return
	}
	percent := -1.0
	if p.Total > 0 {
		percent = min(max(100*p.Progress/p.Total, 0), 100) //nolint:mnd // percent
	}
	// A report that cannot be delivered does not fail the call.
	_ = u.call.Host.Progress(u.ctx, tools.Progress{Percent: percent, Message: excerpt.Line(u.redact(p.Message), maxText)})
}

// meta identifies the call for the server: see [MetaIdempotencyKey] and the keys after it.
func (u *activeCall) meta() mcp.Meta {
	m := mcp.Meta{
		MetaIdempotencyKey: u.call.IdempotencyKey,
		MetaFencingToken:   formatToken(u.call.FencingToken),
		MetaEpoch:          u.call.Epoch,
		MetaAttempt:        u.call.Attempt,
		MetaCall:           u.call.CallID,
		"progressToken":    u.token,
	}
	if u.call.Trace != "" {
		m["traceparent"] = u.call.Trace
	}
	return m
}
