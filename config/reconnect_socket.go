package config

import (
	"fmt"
	"net"
	"sync"

	"github.com/nats-io/nats.go"
)

// dialer closes the socket of the try before. A client that reconnects and is cut off during
// the handshake forgets its socket, which then stays open until garbage collection: a
// server that takes connections and sends nothing would cost a worker its descriptors.
type dialer struct {
	net.Dialer

	mu   sync.Mutex
	last net.Conn
}

// oneSocket gives each connection that is made with it a separate dialer.
func oneSocket(o *nats.Options) error {
	o.CustomDialer = &dialer{Dialer: net.Dialer{Timeout: connectTimeout}}
	return nil
}

// Dial implements nats.CustomDialer. A connection dials one server at a time.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.Dialer.Dial(network, address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil {
		_ = d.last.Close()
	}
	d.last = conn
	return conn, nil
}
