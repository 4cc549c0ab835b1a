package mcptool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// How a session begins: with the first request of the newest protocol (probing), with the one of older protocols
// (legacy), or with a probe that may take its time. probe follows that request, next decides how the next session
// begins.

// legacyProtocol is the newest protocol version whose sessions begin with `initialize`.
const legacyProtocol = "2025-11-25"

// handshake is how a session begins. Servers of protocols before 2026-07-28 know no request before
// `initialize`: most answer `server/discover` with an error, some exit, some never answer.
type handshake int32

const (
	probing      handshake = iota // server/discover, and initialize when it has no answer soon
	legacy                        // initialize only
	waitForProbe                  // server/discover, however long its answer takes
)

// probe follows the request `server/discover` of a session.
type probe struct {
	within  time.Duration // how long the server may take; 0 waits for ever
	abandon func(id json.RawMessage)

	mu        sync.Mutex
	id        json.RawMessage // of the request; nil before it is sent
	timer     *time.Timer
	abandoned bool
	answered  bool // the server has answered, perhaps too late
	accepted  bool // with a result
}

// sent records a message to the server.
func (p *probe) sent(msg []byte) {
	if !bytes.Contains(msg, []byte(`"method":"server/discover"`)) {
		return
	}
	var request struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(msg, &request) != nil || request.ID == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id = request.ID
	if p.within > 0 && p.timer == nil {
		p.timer = time.AfterFunc(p.within, p.timeout)
	}
}

// timeout abandons the probe if it has no answer.
func (p *probe) timeout() {
	p.mu.Lock()
	if p.answered {
		p.mu.Unlock()
		return
	}
	p.abandoned = true
	id := p.id
	p.mu.Unlock()
	p.abandon(id)
}

// answer checks an answer of the server; true if it is to the probe and came too late.
func (p *probe) answer(id json.RawMessage, accepted bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id == nil || p.answered || !bytes.Equal(id, p.id) {
		return false
	}
	p.answered, p.accepted = true, accepted
	return p.abandoned
}

// stop ends the wait for the answer.
func (p *probe) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
}

// next is how the next session is to begin after one that began like this, and whether that is worth
// an immediate try when this one has failed.
func (p *probe) next(now handshake, failed, refused bool) (handshake, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.accepted && p.abandoned: // it speaks the newest protocol, but starts slowly
		return waitForProbe, failed
	case now == probing && p.id != nil && !p.answered:
		return legacy, failed
	case now == probing && p.answered && !p.accepted && !failed:
		return legacy, false
	case now == legacy && failed && refused:
		return waitForProbe, true
	case failed:
		return probing, false
	}
	return now, false
}

// unanswered is the answer that the SDK gets to an abandoned probe.
func unanswered(id json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"server/discover was not answered"}}`+"\n", id)
}

// version of this module, as the client reports it.
func version() string {
	const unknown = "devel"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	const module = "github.com/oneturn/oneturn"
	if info.Main.Path == module && info.Main.Version != "" {
		return info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return unknown
}
