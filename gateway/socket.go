package gateway

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/feed"
	"github.com/oneturn/oneturn/internal/searchbudget"
)

// The endpoint for WebSockets: the handshake, and the parts of a socket. One goroutine sends events (socket_events.go), one
// reads frames (socket_frames.go), each answer has a third, and messages wait for each other; the one of the request pings. The first
// part that ends gives the close code.

// Times of a socket.
const (
	pingEvery = 20 * time.Second
	pongWait  = 40 * time.Second
)

// closeError is why a socket ends: its close code and reason.
type closeError struct {
	code   websocket.StatusCode
	reason string
}

// Error implements error.
func (c *closeError) Error() string { return strconv.Itoa(int(c.code)) + " " + c.reason }

// What ends a socket.
var (
	errCloseDrain    = &closeError{websocket.StatusGoingAway, "drain"}
	errCloseBinary   = &closeError{websocket.StatusUnsupportedData, "binary"}
	errCloseBad      = &closeError{websocket.StatusPolicyViolation, "bad_frames"}
	errCloseJournal  = &closeError{websocket.StatusServiceRestart, "journal_replaced"}
	errCloseSlow     = &closeError{websocket.StatusTryAgainLater, "slow_consumer"}
	errCloseFailed   = &closeError{websocket.StatusTryAgainLater, codeUnavailable}
	errCloseByClient = &closeError{websocket.StatusNormalClosure, ""}
	errCloseNoPong   = &closeError{websocket.StatusGoingAway, "no_pong"}
)

// protocolName is the subprotocol that the gateway answers with if a page offers it, next to one that is a token.
const protocolName = "oneturn"

// socket is GET /ws/{workflow}/{app}/{chat}/{user}. Browsers cannot read the status of a handshake, so what the token does not
// allow is a close code.
func (g *Gateway) socket(c *call) error {
	r := c.r
	if !isUpgrade(r) {
		p := refuse(http.StatusUpgradeRequired, "upgrade_required", "this path is for WebSockets: for plain requests use /api/chats/{app}/{chat}/events")
		p.header = http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}
		return p
	}
	if err := g.origins.Check(r); err != nil {
		return err
	}
	after, err := cursorOf(r)
	if err != nil {
		return err
	}
	id, target, refused := g.admit(c)
	if errors.Is(refused, auth.ErrUnavailable) || errors.Is(refused, auth.ErrRateLimited) {
		return refused
	}
	leave, err := g.enterStream(c.endpoint, target)
	if err != nil {
		return err
	}
	defer leave()
	hijacked := &hijacker{ResponseWriter: c.w}
	conn, err := websocket.Accept(hijacked, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the origin was checked above
		Subprotocols:       []string{protocolName},
	})
	if err != nil {
		return nil // Accept has answered
	}
	s := &socket{g: g, conn: conn, wire: hijacked.wire, id: id, target: target, after: after}
	s.run(refused)
	return nil
}

func isUpgrade(r *http.Request) bool {
	return strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade") && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// admit authenticates a handshake and checks what its path names.
func (g *Gateway) admit(c *call) (*auth.Identity, auth.Target, error) {
	id, err := g.check(c.r, auth.WebSocket)
	if err != nil {
		return &auth.Identity{}, auth.Target{}, err
	}
	target, err := id.Resolve(auth.Target{App: c.params["app"], User: c.params["user"], Workflow: c.params["workflow"], Chat: c.params["chat"]})
	if limited := g.countRequest(id, target); limited != nil {
		return id, auth.Target{}, limited
	}
	return id, target, err
}

// socket is an open WebSocket of a chat.
type socket struct {
	g      *Gateway
	conn   *websocket.Conn
	wire   *wire // of conn
	id     *auth.Identity
	target auth.Target

	end     context.CancelCauseFunc // with a *closeError
	work    context.Context         //nolint:containedctx // of the commands of the socket
	answers sync.WaitGroup
	places  chan struct{} // of answers at the same time
	sender  *sender
	sent    chan struct{} // closed when the last message that was read is sent; of the reader
	held    heldBack      // of the reader
	bad     badFrames
	writing atomic.Int32 // writes in progress
	written atomic.Int64 // when the last one ended, in nanoseconds

	mu     sync.Mutex
	after  uint64             // where the events to send begin
	resume bool               // the client has asked for events from there
	cut    context.CancelFunc // ends the wait for the next event
}

// concurrentAnswers is how many frames of a socket are handled at the same time; then no more are read.
const concurrentAnswers = 8

// run serves a socket until it ends. A refused one is closed before it gets an event.
func (s *socket) run(refused error) {
	defer func() { _ = s.conn.CloseNow() }() // it is closed already, or broken
	s.conn.SetReadLimit(s.g.o.Limits.Body)
	if refused != nil {
		s.close(closingOf(refused))
		return
	}
	// Not the context of the request: it ends in its own way when a connection was hijacked.
	life, cancel := s.g.streamContext(searchbudget.ForUser(context.Background(), s.target.User), s.id)
	defer cancel()
	ctx, end := context.WithCancelCause(life)
	work, cut := context.WithCancelCause(context.WithoutCancel(ctx)) // of commands, which a drain lets end
	s.end, s.work, s.places = end, work, make(chan struct{}, concurrentAnswers)
	s.sender = &sender{g: s.g, id: s.id, target: s.target}
	var parts sync.WaitGroup
	parts.Go(func() { end(s.read(ctx)) })
	parts.Go(func() { end(s.send(ctx)) })
	end(s.ping(ctx)) // here, because a goroutine each would cost more memory than all else of an idle socket
	if errors.Is(context.Cause(ctx), errDraining) {
		s.finish()
	}
	cut(context.Cause(ctx))
	s.close(closingOf(context.Cause(ctx))) // also ends a write that the client does not read
	_ = s.conn.CloseNow()
	parts.Wait()
	s.answers.Wait()
}

// finishTime is how long a drain waits for the commands of a socket.
const finishTime = questionTime + verdictWait + time.Second

// finish waits until the client has the replies to its commands, and takes no more: it has all their places.
func (s *socket) finish() {
	late := time.NewTimer(finishTime)
	defer late.Stop()
	for range cap(s.places) {
		select {
		case s.places <- struct{}{}:
		case <-late.C:
			return
		case <-s.g.ending:
			return
		}
	}
}

// closingOf returns the close code and reason for what ended a socket.
func closingOf(cause error) *closeError {
	var c *closeError
	var denied *auth.Error
	switch {
	case errors.As(cause, &c):
		return c
	case errors.As(cause, &denied) && denied.Status() < http.StatusInternalServerError:
		return &closeError{websocket.StatusPolicyViolation, string(denied.Code)}
	case errors.Is(cause, errDraining), errors.Is(cause, feed.ErrClosed):
		return errCloseDrain
	case errors.Is(cause, feed.ErrJournalReplaced):
		return errCloseJournal
	}
	return errCloseFailed
}

// close sends the close frame and waits a little for the client's.
func (s *socket) close(c *closeError) {
	if c != errCloseByClient {
		s.g.metrics.closes.WithLabelValues(strconv.Itoa(int(c.code)), c.reason).Inc()
	}
	_ = s.conn.Close(c.code, c.reason) // a client that is gone gets none
}

// ping ends with the socket, or when a ping has no pong.
func (s *socket) ping(ctx context.Context) error {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(ctx, pongWait)
		err := s.conn.Ping(within)
		cancel()
		if err != nil && ctx.Err() == nil && !s.writes() {
			return errCloseNoPong
		}
	}
}

// writes reports whether a frame is being written, or was written just now: then a ping may wait for its end, and the client is
// slow at most.
func (s *socket) writes() bool {
	return s.writing.Load() > 0 || time.Since(time.Unix(0, s.written.Load())) < pongWait
}

// write sends frames. A client that reads nothing for a while is too slow.
func (s *socket) write(frames ...[]byte) error {
	if len(frames) == 0 {
		return nil
	}
	s.writing.Add(1)
	s.wire.collect(frames)
	var err error
	for _, frame := range frames {
		// Its context would cost more than the write; the connection has the deadline.
		if err = s.conn.Write(context.Background(), websocket.MessageText, frame); err != nil {
			break
		}
	}
	s.writing.Add(-1)
	s.written.Store(time.Now().UnixNano())
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errCloseSlow
	case err != nil:
		return errCloseByClient
	}
	s.g.metrics.socketFrames.Add(float64(len(frames)))
	return nil
}

// writeOwn sends an event that the gateway itself makes.
func (s *socket) writeOwn(kind string, data any) error {
	frame, err := ownFrame(kind, data)
	if err != nil {
		return err
	}
	return s.write(frame)
}
