package harness

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Direction of the bytes through a [Proxy].
type Direction int

// The directions. Faults of both are two calls.
const (
	Up   Direction = iota // from the client to the server
	Down                  // from the server to the client
)

// Proxy is a TCP proxy between clients and one server, which breaks the network on demand.
// Without a fault it passes bytes on as they come. Its methods are safe for concurrent use.
//
// What a fault looks like from a peer:
//
//	Cut      an orderly end (FIN); a new connection is taken
//	Reset    a broken connection (RST); a new connection is taken
//	Refuse   new connections end immediately; old ones continue
//	Stall    half-open: nothing arrives any more in that direction, without a notice
//	Delay    every byte arrives later by that much
//	Limit    bytes arrive at no more than a rate
//	CutAfter n more bytes arrive, then a reset, in the middle of a message
type Proxy struct {
	target string
	l      net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex
	links   map[*link]struct{}
	closed  bool
	refuse  bool
	delay   time.Duration
	rate    int          // bytes a second; 0: no limit
	free    [2]time.Time // when the rate lets the next byte of a direction pass
	stalled [2]bool
	budget  [2]int64      // bytes until a reset; negative: no limit
	changed chan struct{} // closed when stalled changes
}

// link is one client with its connection to the server.
type link struct {
	conn [2]net.Conn // indexed by the direction that writes to it: Up is the server
	once sync.Once
	done chan struct{} // closed when the link is
}

// NewProxy starts a proxy on a free loopback port to the server at target (HOST:PORT). It
// stops with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{
		target: target, l: l, links: map[*link]struct{}{}, budget: [2]int64{-1, -1}, changed: make(chan struct{}),
	}
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the address to connect to instead of the server's, as HOST:PORT.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// URL returns the address as a NATS URL.
func (p *Proxy) URL() string { return "nats://" + p.Addr() }

// Cut ends all connections in an orderly way.
func (p *Proxy) Cut() { p.drop((*link).close) }

// Reset breaks all connections.
func (p *Proxy) Reset() { p.drop((*link).reset) }

// Refuse reports whether new connections are ended immediately.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// Stall holds all bytes of a direction back, also on new connections, until [Proxy.Heal]
// lets them continue, late but whole. The peers see a connection that is up and silent.
func (p *Proxy) Stall(d Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled[d] = true
}

// Delay has every byte that comes in from now on arrive later, in both directions.
func (p *Proxy) Delay(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// Limit lets no more than so many bytes a second pass in each direction, on all connections
// together.
func (p *Proxy) Limit(rate int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate, p.free = rate, [2]time.Time{}
}

// CutAfter lets n more bytes pass in a direction, on all connections together, and then
// resets the connection that carries the next one. It strikes once.
func (p *Proxy) CutAfter(d Direction, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget[d] = n
}

// Heal ends every fault. Connections that still exist continue.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse, p.delay, p.rate, p.stalled, p.budget = false, 0, 0, [2]bool{}, [2]int64{-1, -1}
	close(p.changed)
	p.changed = make(chan struct{})
}

// Connections returns how many clients are connected through the proxy.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.l.Close() // accept ends
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) drop(how func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		how(l)
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// serve passes bytes between a client and the server until either is gone.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	refuse := p.refuse || p.closed
	p.mu.Unlock()
	if refuse {
		return
	}
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", p.target)
	if err != nil {
		return // the client sees its connection end, as with a server that is down
	}
	l := &link{conn: [2]net.Conn{Up: server, Down: client}, done: make(chan struct{})}
	defer l.close()
	p.mu.Lock()
	p.links[l] = struct{}{}
	if p.closed {
		l.close()
	}
	p.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { p.pass(l, Up) })
	wg.Go(func() { p.pass(l, Down) })
	wg.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// chunk is the data of one read, and when it may arrive.
type chunk struct {
	data []byte
	due  time.Time
}

// pass moves the bytes of one direction. Reading runs ahead of writing by what a delay holds.
func (p *Proxy) pass(l *link, d Direction) {
	const ahead, size = 64, 32 << 10
	chunks := make(chan chunk, ahead)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer l.close()
		for c := range chunks {
			if !p.deliver(l, d, c) {
				break
			}
		}
	})
	for buf := make([]byte, size); ; {
		n, err := l.conn[1-d].Read(buf)
		if n > 0 {
			p.mu.Lock()
			delay := p.delay
			p.mu.Unlock()
			select {
			case chunks <- chunk{append([]byte(nil), buf[:n]...), time.Now().Add(delay)}:
			case <-l.done:
				err = net.ErrClosed
			}
		}
		if err != nil {
			close(chunks)
			wg.Wait()
			return
		}
	}
}

// deliver writes a chunk when it is due and nothing holds it back. It reports whether the
// link continues.
func (p *Proxy) deliver(l *link, d Direction, c chunk) bool {
	if !l.wait(c.due) || !l.wait(p.turn(d, len(c.data))) {
		return false
	}
	n, ok := p.allow(l, d, len(c.data))
	if !ok {
		return false
	}
	if _, err := l.conn[d].Write(c.data[:n]); err != nil {
		return false
	}
	if n < len(c.data) {
		l.reset()
	}
	return n == len(c.data)
}

// turn returns when a rate lets n more bytes pass; it takes their place in the row.
func (p *Proxy) turn(d Direction, n int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate <= 0 {
		return time.Time{}
	}
	if now := time.Now(); p.free[d].Before(now) {
		p.free[d] = now
	}
	p.free[d] = p.free[d].Add(time.Duration(n) * time.Second / time.Duration(p.rate))
	return p.free[d]
}

// wait waits for a time. It reports false when the link is closed before.
func (l *link) wait(until time.Time) bool {
	left := time.Until(until)
	if left <= 0 {
		return true
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.done:
		return false
	}
}

// allow waits out a stall and returns how many of n bytes may pass; fewer than n before a cut.
func (p *Proxy) allow(l *link, d Direction, n int) (passed int, ok bool) {
	p.mu.Lock()
	for p.stalled[d] {
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-l.done:
			return 0, false
		}
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	switch left := p.budget[d]; {
	case left < 0:
		return n, true
	case left < int64(n):
		p.budget[d] = -1
		return int(left), true
	default:
		p.budget[d] -= int64(n)
		return n, true
	}
}

// close ends both connections; what was written before still arrives.
func (l *link) close() {
	l.once.Do(func() { close(l.done) })
	for _, c := range l.conn {
		_ = c.Close() // may be closed already
	}
}

// reset ends both connections immediately, so that the peers see an error.
func (l *link) reset() {
	for _, c := range l.conn {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // may be closed already
		}
	}
	l.close()
}
