//go:build chaos

package gatewaychaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/test/gatewaychaos"
)

// sums are the sums of frames by their text: the tabs of a chat get the same ones.
type sums struct {
	seed maphash.Seed
	of   sync.Map
}

func (s *sums) sum(frame []byte) (uint64, error) {
	key := maphash.Bytes(s.seed, frame)
	if sum, ok := s.of.Load(key); ok {
		return sum.(uint64), nil //nolint:forcetypeassert // nothing else is stored
	}
	sum, err := gatewaychaos.Sum(frame)
	if err == nil {
		s.of.Store(key, sum)
	}
	return sum, err
}

// tab is a page with a WebSocket, which connects again to any gateway, with the last sequence that it saw.
type tab struct {
	c    *userChat
	name string
	slow bool
	rng  *rand.Rand

	last atomic.Uint64
	conn atomic.Pointer[websocket.Conn] // nil while there is none
	log  *gatewaychaos.SocketLog        // of its goroutine
	logs []*gatewaychaos.SocketLog
}

// run keeps the tab connected until ctx ends.
func (s *tab) run(ctx context.Context) {
	s.begin(0)
	for ctx.Err() == nil {
		err := s.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		s.c.stage.count("socket: " + reason(err))
		if !s.c.closing.Load() {
			switch s.rng.IntN(8) {
			case 0: // another tab takes its place
				s.begin(0)
			case 1: // and one that has the beginning from elsewhere
				s.begin(s.last.Load())
			}
		}
		_ = pause.For(ctx, time.Duration(s.rng.IntN(400))*time.Millisecond)
	}
	s.log.Through = s.c.through.Load()
}

// begin begins another log.
func (s *tab) begin(after uint64) {
	s.last.Store(after)
	s.log = &gatewaychaos.SocketLog{Name: s.name, Chat: s.c.id, After: after}
	s.logs = append(s.logs, s.log)
}

// connect reads one WebSocket until it ends.
func (s *tab) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialing, dialed := context.WithTimeout(ctx, 8*time.Second)
	after := s.last.Load()
	address := s.c.stage.anyGateway(s.rng).proxy.Addr()
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	if s.slow { // without a proxy, which would read ahead
		transport.DialContext, address = dialNarrow, s.c.stage.anyGateway(s.rng).address
	}
	url := fmt.Sprintf("ws://%s/ws/%s/%s/%s/me?after=%d", address, workflow, s.c.app, s.c.id, after)
	conn, response, err := websocket.Dial(dialing, url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{"oneturn", "bearer." + s.c.token}}) //nolint:bodyclose // Dial documents that it need not be closed
	dialed()
	if err != nil {
		if response != nil && response.StatusCode != http.StatusServiceUnavailable && response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusSwitchingProtocols {
			s.c.stage.verdict.Brokenf("G5", "%s: the handshake was answered with %d", s.name, response.StatusCode)
		}
		return errDial
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(4 << 20)
	s.conn.Store(conn)
	defer s.conn.Store(nil)
	var pings sync.WaitGroup
	defer pings.Wait()
	defer cancel()
	pings.Go(func() { s.ping(ctx, conn) })
	return s.read(ctx, conn, after)
}

var errDial = errors.New("no handshake")

// ping ends a connection on which no pong arrives.
func (s *tab) ping(ctx context.Context, conn *websocket.Conn) {
	limit := 5 * time.Second
	if s.slow {
		limit = time.Minute
	}
	for pause.For(ctx, limit) == nil {
		within, cancel := context.WithTimeout(ctx, limit)
		err := conn.Ping(within)
		cancel()
		if err != nil {
			_ = conn.CloseNow()
			return
		}
	}
}

// received is a frame, as far as a tab looks at it.
type received struct {
	Type     string `json:"type"`
	Sequence uint64 `json:"sequence"`
	Replay   bool   `json:"replay"`
	Data     struct {
		Last      uint64 `json:"last_sequence"`
		Replayed  int    `json:"replayed_messages"`
		Reset     bool   `json:"reset"`
		MessageID string `json:"message_id"`
		Status    any    `json:"status"`
		Code      string `json:"code"`
		Question  string `json:"tool_call_id"`
	} `json:"data"`
}

// read notes what comes.
func (s *tab) read(ctx context.Context, conn *websocket.Conn, after uint64) error {
	replayed, boundary := 0, false
	for {
		if s.slow {
			_ = pause.For(ctx, time.Duration(s.rng.IntN(60))*time.Millisecond)
		}
		_, data, err := conn.Read(ctx)
		if err != nil {
			s.closed(err)
			return err
		}
		var f received
		if err := json.Unmarshal(data, &f); err != nil {
			s.c.stage.verdict.Brokenf("G5", "%s: a frame is not JSON: %v", s.name, err)
			continue
		}
		switch {
		case f.Sequence > 0:
			sum, err := s.c.stage.sums.sum(data)
			if err != nil {
				s.c.stage.verdict.Brokenf("G5", "%s: record %d: %v", s.name, f.Sequence, err)
			}
			s.log.Frames = append(s.log.Frames, gatewaychaos.Frame{Sequence: f.Sequence, Sum: sum})
			s.last.Store(f.Sequence)
			s.c.stage.frames.Add(1)
			if f.Replay {
				replayed++
			}
			if f.Replay == boundary {
				s.c.stage.verdict.Brokenf("G5", "%s: record %d: replay is %v, and the boundary was passed: %v", s.name, f.Sequence, f.Replay, boundary)
			}
		case f.Type == "chat.resume_boundary":
			if boundary || f.Data.Reset || f.Data.Replayed != replayed || f.Data.Last < s.last.Load() || f.Data.Last < after {
				s.c.stage.verdict.Brokenf("G5", "%s: wrong boundary at %d after %d and %d replayed events: %s", s.name, s.last.Load(), after, replayed, data)
			}
			boundary = true
		case f.Type == "ack.input" && (f.Data.Code == "accepted" || f.Data.Code == "replayed" || f.Data.Code == "published"):
			s.c.confirmed(f.Data.MessageID)
		case f.Type == "ack.tool_call_response" && (f.Data.Code == "accepted" || f.Data.Code == "replayed"):
			s.c.confirmedAnswer(f.Data.Question)
		}
	}
}

// closed checks the close code of a socket.
func (s *tab) closed(err error) {
	var c websocket.CloseError
	if !errors.As(err, &c) {
		return
	}
	switch reason := fmt.Sprint(int(c.Code), " ", c.Reason); reason {
	case "1001 drain", "1013 slow_consumer", "1013 unavailable", "1001 no_pong":
	default:
		s.c.stage.verdict.Brokenf("G5", "%s: closed with %s", s.name, reason)
	}
}

// send sends a frame, if the tab is connected.
func (s *tab) send(ctx context.Context, frame any) {
	conn := s.conn.Load()
	if conn == nil {
		return
	}
	data, err := json.Marshal(frame)
	if err != nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = conn.Write(within, websocket.MessageText, data) // the sender looks whether it had an effect
}

// reason is why a connection ended, without what differs from one to the next.
func reason(err error) string {
	var c websocket.CloseError
	switch {
	case errors.As(err, &c):
		return fmt.Sprint(int(c.Code), " ", c.Reason)
	case errors.Is(err, errDial):
		return "no handshake"
	}
	return "cut"
}

// dialNarrow connects with a small buffer, so that what a slow reader has not read waits in the gateway.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10) // it then reads as fast as others
	}
	return conn, err
}
