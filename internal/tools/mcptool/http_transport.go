package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A session on streamable HTTP: RoundTrip sees every request of the SDK, marks the one that carries the call, and
// reads in statuses whether the call was refused, the session is gone, or nothing is known; http_body.go reads the
// answers.

// httpTransport reaches a server on streamable HTTP.
type httpTransport struct {
	server *server
	client *outbound.Client
}

func newHTTPTransport(s *server) *httpTransport {
	return &httpTransport{s, outbound.New(outbound.Options{
		Network: s.to.Network, Headers: s.to.Headers, MaxBody: int64(s.o.maxMessage()), TLS: s.o.TLS, Events: true,
	})}
}

func (w *httpTransport) fix() string {
	return fmt.Sprintf("check its url and headers in the manifest (servers: %s)", w.server.to.Name)
}

// explain is why a request failed, in a text that contains neither its URL nor its secrets.
func (w *httpTransport) explain(err error) string {
	var own *events.Error
	if outbound.Unrecognized(err) { // not MCP: the client has the reason
		return w.client.Redact(excerpt.Line(err.Error(), maxText))
	}
	if errors.As(outbound.CallError(context.Background(), "", err), &own) && own.Msg != "" && protocolError(err) == nil {
		return own.Msg
	}
	return excerpt.Line(w.client.Secrets().Text(err.Error()), maxText)
}

// httpSession is the connection of one session: its requests end with it.
type httpSession struct {
	transport *httpTransport
	session   *session
	ctx       context.Context //nolint:containedctx // of the session
	cut       context.CancelFunc
	began     atomic.Bool           // a request was answered
	status    atomic.Int32          // the last that was an error
	broke     atomic.Pointer[error] // the last that reading an answer ended with
	flooded   atomic.Bool           // it was cut because of too many requests of the server
}

func (w *httpTransport) open(_ context.Context, s *session) (link, error) {
	l := &httpSession{transport: w, session: s}
	l.ctx, l.cut = context.WithCancel(context.Background())
	s.probe.abandon = func(json.RawMessage) { l.cut() } // the next session begins with initialize
	return l, nil
}

// Connect implements [mcp.Transport].
func (l *httpSession) Connect(ctx context.Context) (mcp.Connection, error) {
	t := mcp.StreamableClientTransport{
		Endpoint:     l.transport.server.to.URL,
		HTTPClient:   &http.Client{Transport: l, CheckRedirect: l.transport.client.HTTP.CheckRedirect},
		MaxEventSize: l.transport.server.o.maxMessage(),
	}
	return t.Connect(ctx) //nolint:wrapcheck // the SDK's own
}

// drop does nothing: the SDK notifies the server of the end of the session.
func (l *httpSession) drop() {}

func (l *httpSession) kill() { l.cut() }

func (l *httpSession) end(time.Duration) {
	l.cut()
	l.transport.client.Close()
}

func (l *httpSession) reason() string {
	if l.flooded.Load() {
		return tooMuchWanted
	}
	switch status := int(l.status.Load()); status {
	case 0:
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("it answers HTTP %d: it does not accept the headers of the manifest", status)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return fmt.Sprintf("it answers HTTP %d: there is no MCP server at this path", status)
	default:
		return fmt.Sprintf("it answers HTTP %d", status)
	}
	if err := l.broke.Load(); err != nil && l.ctx.Err() == nil {
		return l.transport.explain(*err)
	}
	return ""
}

func (l *httpSession) explain(err error) string { return l.transport.explain(err) }

func (l *httpSession) secrets() redact.Set { return l.transport.client.Secrets() }

func (l *httpSession) tooLarge() bool {
	err := l.broke.Load()
	return err != nil && events.CodeOf(outbound.CallError(context.Background(), "", *err)) == events.CodeTooLarge
}

type activeCallKey struct{}

// withActiveCall marks the requests of a call among the others of its session.
func withActiveCall(ctx context.Context, u *activeCall) context.Context {
	return context.WithValue(ctx, activeCallKey{}, u)
}

// RoundTrip implements [http.RoundTripper] for the requests of the SDK.
func (l *httpSession) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(l.ctx, cancel)
	done := func() {
		stop()
		cancel()
	}
	u, _ := ctx.Value(activeCallKey{}).(*activeCall)
	sent := body(req)
	l.session.sending(sent)
	calls := u != nil && bytes.Contains(sent, []byte(`"method":"tools/call"`))
	if calls {
		u.sent(true)
	}
	resp, err := l.transport.client.HTTP.Transport.RoundTrip(req.WithContext(ctx))
	if one := l.session.activeCall(); one != nil {
		one.wrote(sent)
	}
	l.session.answered(sent)
	if err != nil {
		done()
		if failed := outbound.CallError(req.Context(), "", err); calls && tools.IsRetryable(failed) {
			u.refuse(tools.Retryable(failf(events.CodeToolError, u.op, "MCP server %s: %s; the tool was not entered",
				l.transport.server.to.Name, l.transport.explain(err))))
		}
		return nil, err //nolint:wrapcheck // of a transport
	}
	switch {
	case req.Method != http.MethodPost:
	case resp.StatusCode >= http.StatusBadRequest:
		l.failed(u, calls, resp)
	default:
		l.began.Store(true)
		l.status.Store(0)
	}
	resp.Body = l.watched(resp, done)
	return resp, nil
}

// body returns what a request of the SDK sends.
func body(req *http.Request) []byte {
	if req.GetBody == nil {
		return nil
	}
	r, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	return data
}

// failed records what a status means for the call.
func (l *httpSession) failed(u *activeCall, calls bool, resp *http.Response) {
	// Once a session has begun, servers answer 404 to methods that they do not know, and to sessions that are over.
	if resp.StatusCode != http.StatusNotFound || !l.began.Load() {
		l.status.Store(int32(resp.StatusCode))
	}
	if !calls {
		return
	}
	session := resp.Request != nil && resp.Request.Header.Get("Mcp-Session-Id") != ""
	if session && staleAfter(resp.StatusCode) {
		u.set(&u.stale)
	}
	switch resp.StatusCode {
	case http.StatusBadRequest:
		if session && unknownSession(peek(resp)) {
			u.set(&u.gone)
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		wait, _ := target.RetryAfter(resp.Header.Get(target.HeaderRetryAfter))
		u.refuse(tools.RetryAfter(failf(events.CodeToolError, u.op, "MCP server %s answers HTTP %d: it has not taken the call",
			l.transport.server.to.Name, resp.StatusCode), wait))
	case http.StatusNotFound:
		if session {
			u.set(&u.gone)
		}
	case http.StatusUnauthorized, http.StatusForbidden:
		u.refuse(failf(events.CodeToolError, u.op, "MCP server %s: %s; %s", l.transport.server.to.Name, l.reason(), l.transport.fix()))
	}
}

// staleAfter reports whether a session is not used again after a status: servers that have lost
// their sessions, in a restart for example, answer with many.
func staleAfter(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return false
	}
	return status >= http.StatusBadRequest
}

// maxPeek bounds what is read of an error that may be about the session.
const maxPeek = 4 << 10

// peek returns the beginning of a body, which stays whole.
func peek(resp *http.Response) []byte {
	begin, err := io.ReadAll(io.LimitReader(resp.Body, maxPeek))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), rest), resp.Body}
	return begin
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// unknownSession reports whether an error means that the server does not know the session, and so
// has not run the call.
func unknownSession(text []byte) bool {
	text = bytes.ToLower(text)
	return bytes.Contains(text, []byte("session")) || bytes.Contains(text, []byte("initializ"))
}

func (u *activeCall) refuse(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refused = err
}
