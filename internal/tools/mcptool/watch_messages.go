package mcptool

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/tools"
)

// What a session reads in the messages of its server before the SDK does (saw), and in the messages to it (answered):
// progress in the order in which it came, results digit by digit, and how many requests of the server have no
// answer yet. Both transports pass every message through here.

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
