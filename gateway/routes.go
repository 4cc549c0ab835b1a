package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/searchbudget"
)

// The table of endpoints, and how a request is routed to its endpoint: the path is matched segment by segment as it was sent, so
// that an encoded slash is part of an id, and each segment is decoded once.

// route is a row of the table.
type route struct {
	method   string
	pattern  string // segments in braces are parameters: one segment each, not empty
	endpoint string // its name in metrics and logs
	// self means that the endpoint authenticates its requests itself.
	self bool
	// namesUser means that the body may name the user: the endpoint counts the request of a service for that one.
	namesUser bool
	// streams means that the endpoint serves an EventSource to those that accept it.
	streams bool
	serve   func(c *call) error
}

// routes returns the table of endpoints.
func (g *Gateway) routes() []route {
	return slices.Concat(g.chatRoutes(), g.socketRoutes(), g.aguiRoutes())
}

// chatRoutes are the endpoints for plain requests.
func (g *Gateway) chatRoutes() []route {
	return []route{
		{method: http.MethodPost, pattern: "/api/tool-call/respond", endpoint: "respond", namesUser: true, serve: g.respond},
		{method: http.MethodGet, pattern: "/api/chats/{app}/{chat}/events", endpoint: "events", streams: true, serve: g.events},
		{method: http.MethodGet, pattern: "/api/chats/{app}/{chat}/waits", endpoint: "waits", serve: g.waits},
		{method: http.MethodPost, pattern: "/api/chats/{app}/{chat}/cancel", endpoint: "cancel", serve: g.cancel},
		{method: http.MethodGet, pattern: "/api/chats/{app}/{chat}/blobs/{name}", endpoint: "blobs", serve: g.blob},
	}
}

// socketRoutes has the endpoint for WebSockets.
func (g *Gateway) socketRoutes() []route {
	return []route{{method: http.MethodGet, pattern: "/ws/{workflow}/{app}/{chat}/{user}", endpoint: "ws", self: true, serve: g.socket}}
}

// call is a request at an endpoint.
type call struct {
	w        http.ResponseWriter
	r        *http.Request
	endpoint string
	params   map[string]string // decoded
	id       *auth.Identity
	target   auth.Target // what the path names, resolved; nothing at an endpoint that authenticates itself

	bodyRead bool // the body was read to its end
	held     held // by the body

	begun time.Time
	span  trace.Span // nil without one, or when it has ended
	code  string     // of the reply, as far as it is known; for the span
}

// answer routes a request to its endpoint, and replies with the error that the endpoint returns.
func (g *Gateway) answer(w http.ResponseWriter, r *http.Request) {
	out := &recorder{ResponseWriter: w}
	c := &call{w: out, r: r, endpoint: "none", begun: time.Now()}
	defer func() {
		defer func() { // also if it panics again
			c.held.free()
			g.metrics.request(c.endpoint, out.code(), time.Since(c.begun))
			c.end(out.code())
		}()
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler { //nolint:errorlint // the value that net/http documents
				panic(v)
			}
			g.panicked(c, out, v)
		}
	}()
	if err := g.enter(c); err != nil {
		p := g.refusalOf(err)
		c.code = p.code
		if r.Context().Err() != nil && p.status >= http.StatusInternalServerError && !out.begun { // a reply is not read
			out.begun, out.status = true, statusClientLeft
			return
		}
		g.logRefusal(r.Context(), c.endpoint, c.target.App, p)
		if !out.begun {
			if !c.bodyRead {
				leaveBody(w, r)
			}
			p.write(out)
		}
	}
}

// statusClientLeft counts requests whose clients left before the reply.
const statusClientLeft = 499

// panicked replies to a request whose endpoint has a bug. The client learns nothing about it.
func (g *Gateway) panicked(c *call, out *recorder, v any) {
	c.code = codeInternal
	g.metrics.panics.Inc()
	g.o.Logger.Error("an endpoint of the gateway panicked", endpointLabel, c.endpoint, "panic", events.Clip(fmt.Sprint(v)), "stack", string(debug.Stack()))
	if !out.begun {
		refuse(http.StatusInternalServerError, codeInternal, "the gateway failed: the request is logged").write(out)
		return
	}
	panic(http.ErrAbortHandler) // a half of a reply must not look whole
}

// enter finds the endpoint, checks the token and what the path names, and calls the endpoint.
func (g *Gateway) enter(c *call) error {
	found, err := g.find(c)
	if err != nil {
		return err
	}
	c.endpoint = found.endpoint
	if found.self {
		return found.serve(c)
	}
	from := auth.HeaderOnly
	if found.streams && acceptsStream(c.r) {
		from = auth.EventSource
	}
	c.id, err = g.check(c.r, from)
	c.begin(g.tracer, found)
	if err != nil {
		return err
	}
	if c.params["app"] != "" { // else the body names the tenant
		c.target, err = c.id.Resolve(auth.Target{App: c.params["app"], Chat: c.params["chat"]})
	}
	if limited := g.countEntry(c, found); limited != nil {
		return limited
	}
	if err != nil {
		return err
	}
	c.searchFor(cmp.Or(c.target.User, c.id.User))
	return found.serve(c)
}

// searchFor makes the searches of the request count for a user.
func (c *call) searchFor(user string) {
	c.r = c.r.WithContext(searchbudget.ForUser(c.r.Context(), user))
}

// countEntry counts a request before its body is read. Whose it is may be in the body: of a service, which may name any user.
func (g *Gateway) countEntry(c *call, found *route) error {
	if found.namesUser && c.id.Has(auth.RoleService) {
		return g.rates.Tenant(tenantOf(c.id, c.target))
	}
	return g.countRequest(c.id, c.target)
}

// find returns the row of a request and sets the parameters of its path.
func (g *Gateway) find(c *call) (*route, error) {
	segments := strings.Split(c.r.URL.EscapedPath(), "/")
	var allowed []string
	for i := range g.table {
		row := &g.table[i]
		params, ok, err := row.match(segments)
		switch {
		case !ok:
		case row.method != c.r.Method:
			allowed = append(allowed, row.method)
		default:
			c.params = params
			return row, err
		}
	}
	if allowed != nil {
		p := refuse(http.StatusMethodNotAllowed, "method_not_allowed", "this path takes other methods: see the header Allow")
		p.header = http.Header{"Allow": {strings.Join(allowed, ", ")}}
		return nil, p
	}
	return nil, refuse(http.StatusNotFound, "not_found", "there is no such path: see docs/gateway.md for the paths")
}

// match compares the segments of a path with the pattern, and decodes the parameters.
func (r *route) match(segments []string) (params map[string]string, ok bool, err error) {
	wanted := strings.Split(r.pattern, "/")
	if len(wanted) != len(segments) {
		return nil, false, nil
	}
	params = map[string]string{}
	for i, want := range wanted {
		name, isParam := strings.CutPrefix(want, "{")
		switch {
		case !isParam && want != segments[i], isParam && segments[i] == "":
			return nil, false, nil
		case isParam:
			value, wrong := decodeSegment(segments[i])
			if wrong != nil {
				err = wrong
			}
			params[strings.TrimSuffix(name, "}")] = value
		}
	}
	return params, true, err
}

// errBadPath is the refusal of an id in a path that no id can be.
var errBadPath = refuse(http.StatusBadRequest, "bad_path", "an id in the path is not valid: percent-encode it as UTF-8, without control characters, at most 1024 bytes")

func decodeSegment(segment string) (string, error) {
	value, err := url.PathUnescape(segment)
	if err != nil || !utf8.ValidString(value) || len(value) > maxSegment {
		return "", errBadPath
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errBadPath
	}
	return value, nil
}

// maxSegment bounds an id in a path. The name of a blob is made of several ids, each of them short as a token.
const maxSegment = events.MaxIDBytes

// recorder notes what an endpoint has sent.
type recorder struct {
	http.ResponseWriter

	begun  bool
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (r *recorder) WriteHeader(status int) {
	if !r.begun && status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		r.begun, r.status = true, status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (r *recorder) Write(b []byte) (int, error) {
	if !r.begun {
		r.begun, r.status = true, http.StatusOK
	}
	return r.ResponseWriter.Write(b) //nolint:wrapcheck // it stands in for the writer
}

// Unwrap is for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// countRequest counts a request of a user, also of the one that a service names, and refuses one too many. What names no
// tenant counts for the first one of the token.
func (g *Gateway) countRequest(id *auth.Identity, t auth.Target) error {
	return g.rates.Request(tenantOf(id, t), cmp.Or(t.User, id.User))
}

func tenantOf(id *auth.Identity, t auth.Target) string {
	if t.App == "" && len(id.Apps) > 0 {
		return id.Apps[0]
	}
	return t.App
}
