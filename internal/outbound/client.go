package outbound

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Bounds of a [Client]. The time of a whole request is bounded by its context alone.
const (
	DefaultMaxBody = 10 << 20 // bytes of an answer, or of one event of a stream, once inflated

	maxHeader    = 64 << 10 // bytes of the headers of an answer
	maxRedirects = 3
	dialTimeout  = 10 * time.Second // to resolve and connect, and as long again for TLS
	maxIdle      = 16
	// idleTimeout is shorter than the timeout of most servers (5 s and more): a request that meets a
	// connection just being closed has an unknown outcome, and a new connection costs little.
	idleTimeout = 4 * time.Second
)

// Options of a [Client]. The zero value is usable.
type Options struct {
	Network target.Network
	// Headers are added to each request that does not set them itself, but not to one that was
	// redirected to another origin. Files are read for each request.
	Headers map[string]target.Value
	MaxBody int64         // 0 = DefaultMaxBody
	Events  bool          // an answer may be a stream of events, of which each one is bounded instead of all together
	TLS     *tls.Config   // nil trusts the system's authorities
	Resolve *net.Resolver // nil is the system's
}

// Client sends requests. It is safe for concurrent use, and has nothing open until the first.
type Client struct {
	HTTP     *http.Client
	settings *settings
}

// New returns a client.
func New(o Options) *Client {
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	dialer := &net.Dialer{Timeout: dialTimeout, Resolver: o.Resolve, ControlContext: newGuard(o.Network.AllowPrivate).control}
	security := o.TLS.Clone()
	if security == nil {
		security = &tls.Config{}
	}
	security.MinVersion = max(security.MinVersion, tls.VersionTLS12)
	var only http.Protocols
	only.SetHTTP1(true) // one request a connection: what broke is what was asked
	c := &Client{settings: &settings{values: o.Headers}}
	c.HTTP = &http.Client{
		CheckRedirect: redirects(o.Network.AllowHTTP),
		Transport: &transport{
			settings: c.settings, allowHTTP: o.Network.AllowHTTP, maxBody: o.MaxBody, events: o.Events,
			base: &http.Transport{
				Proxy:                  nil, // it would dial for us, without the check
				DialContext:            dialer.DialContext,
				TLSClientConfig:        security,
				TLSHandshakeTimeout:    dialTimeout,
				Protocols:              &only,
				MaxIdleConns:           maxIdle,
				MaxIdleConnsPerHost:    maxIdle,
				IdleConnTimeout:        idleTimeout,
				MaxResponseHeaderBytes: maxHeader,
			},
		},
	}
	return c
}

// Redact replaces the secrets that were sent last in a text that may go anywhere.
func (c *Client) Redact(text string) string { return c.settings.secrets().Text(text) }

// Secrets returns the secrets that were sent last.
func (c *Client) Secrets() redact.Set { return c.settings.secrets() }

// RedactJSON does the same in the strings of a valid JSON value.
func (c *Client) RedactJSON(value json.RawMessage) json.RawMessage {
	return c.settings.secrets().JSON(value)
}

// Close closes the connections that are idle.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }
