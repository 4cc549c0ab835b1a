// Package httptool calls HTTP endpoints as tools: the arguments are the JSON body of a request,
// the answer's body is the result. The endpoint is a constant of the manifest, and addresses,
// redirects and sizes are bounded by package outbound.
//
// An endpoint identifies its call by headers: Idempotency-Key and X-Fencing-Token,
// and the headers of package target. A request is retryable only if it has certainly not arrived, or
// the endpoint reports that it has done nothing; any other failure has an unknown outcome. httptool.go sends the
// request, response.go reads the result, stream.go reads progress from server-sent events.
package httptool

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"net/http"
	"net/textproto"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// DefaultMaxAnswer bounds an answer, and each event of a stream, in bytes.
const DefaultMaxAnswer = outbound.DefaultMaxBody

// Options of a [Tool]. The zero value is usable.
type Options struct {
	MaxAnswer int         // bytes of an answer once inflated; 0 = DefaultMaxAnswer, then the call fails as too_large
	TLS       *tls.Config // nil trusts the system's authorities
}

// Tool calls one endpoint. It is safe for concurrent use.
type Tool struct {
	t      target.HTTP
	client *outbound.Client
}

var _ tools.Closer = (*Tool)(nil)

// New makes the tool. It does no I/O.
func New(t *target.HTTP, o Options) *Tool {
	return &Tool{t: *t, client: outbound.New(outbound.Options{
		Network: t.Network, Headers: t.Headers, TLS: o.TLS, MaxBody: int64(cmp.Or(o.MaxAnswer, DefaultMaxAnswer)), Events: true,
	})}
}

// Close implements [tools.Closer]: it closes the idle connections. Connections of active
// calls end with their calls.
func (t *Tool) Close(context.Context) error {
	t.client.Close()
	return nil
}

// Invoke implements [tools.Invoker].
func (t *Tool) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	op := "call " + call.Name
	if err := outbound.Ended(ctx, op); err != nil {
		return tools.Result{}, err
	}
	req, err := t.request(ctx, op, call)
	if err != nil {
		return tools.Result{}, err
	}
	resp, err := t.client.HTTP.Do(req)
	if err != nil {
		return tools.Result{}, outbound.CallError(ctx, op, err)
	}
	defer resp.Body.Close()
	a := &answer{Response: resp, tool: t, call: call, op: op}
	value, err := a.result(ctx)
	return tools.Result{Value: value}, err
}

// request makes the request of a call.
func (t *Tool) request(ctx context.Context, op string, call *tools.Call) (*http.Request, error) {
	args, err := call.ArgsFor(op, nil)
	if err != nil {
		return nil, err
	}
	method := cmp.Or(t.t.Method, http.MethodPost)
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return nil, &events.Error{Code: events.CodeToolError, Op: op, Msg: "method " + strconv.Quote(method) + " sends no body: use POST, PUT or PATCH"}
	}
	req, err := http.NewRequestWithContext(ctx, method, t.t.URL, bytes.NewReader(args))
	if err != nil { // its text holds the URL, which may hold a key
		return nil, &events.Error{Code: events.CodeToolError, Op: op, Msg: "the url of the manifest cannot be read"}
	}
	outbound.Identify(req, call)
	req.Header.Set("Content-Type", "application/json")
	if !t.sets("Accept") {
		req.Header.Set("Accept", "application/json, text/event-stream;q=0.5, text/plain;q=0.1")
	}
	return req, nil
}

// sets reports whether the manifest sets a header.
func (t *Tool) sets(header string) bool {
	for name := range t.t.Headers {
		if textproto.CanonicalMIMEHeaderKey(name) == header {
			return true
		}
	}
	return false
}
