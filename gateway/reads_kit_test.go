package gateway_test

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/oneturntest"
)

// reads are the reads of single records by a gateway, which a test holds.
type reads struct {
	*testing.T

	mu    sync.Mutex
	about []byte        // the reads that are held
	held  chan struct{} // closed when they may continue
	begun chan struct{} // gets one for each of them
}

// Where the reads of the journal go, and where they go instead.
const (
	readSubject = "$JS.API.STREAM.MSG.GET."
	heldSubject = "$TS.API.STREAM.MSG.GET."
)

// redirect is a dialer whose connections send reads to the test.
type redirect struct{}

func (redirect) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address) //nolint:noctx // the interface of nats.go has none
	return redirected{conn}, err
}

type redirected struct{ net.Conn }

func (r redirected) Write(b []byte) (int, error) {
	return r.Conn.Write(bytes.ReplaceAll(b, []byte(readSubject), []byte(heldSubject)))
}

// interceptReads returns the reads of a server, and a change of the options of a gateway that passes its reads through them.
func interceptReads(t *testing.T) (*reads, func(server *oneturntest.Server) func(*gateway.Options)) {
	t.Helper()
	r := &reads{T: t, begun: make(chan struct{}, 10_000)}
	return r, func(server *oneturntest.Server) func(*gateway.Options) {
		nc := server.Connect()
		_, err := nc.Subscribe(heldSubject+">", func(m *nats.Msg) {
			go func() { // ends with the test at the latest
				r.wait(m.Data)
				reply, err := nc.Request(readSubject+m.Subject[len(heldSubject):], m.Data, 10*time.Second)
				if err == nil {
					_ = m.Respond(reply.Data)
				}
			}()
		})
		require.NoError(t, err)
		require.NoError(t, nc.Flush())
		return func(o *gateway.Options) {
			o.Reads = o.NATS
			o.NATS = server.Connect(nats.SetCustomDialer(redirect{}))
		}
	}
}

// hold holds the reads that have a text in their request until they are released.
func (r *reads) hold(text string) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := make(chan struct{})
	r.about, r.held = []byte(text), held
	release = sync.OnceFunc(func() { close(held) })
	r.Cleanup(release)
	return release
}

func (r *reads) wait(request []byte) {
	r.mu.Lock()
	held := r.held
	about := held != nil && bytes.Contains(request, r.about)
	r.mu.Unlock()
	if about {
		r.begun <- struct{}{}
		<-held
	}
}
