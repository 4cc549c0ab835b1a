package outbound

import (
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// transport makes each hop of a request follow the rules that net/http leaves open.
type transport struct {
	base      *http.Transport
	settings  *settings
	allowHTTP bool
	maxBody   int64
	events    bool
}

// unsentError marks an error of a request of which the server has certainly not got all headers:
// nothing has happened.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	refuse := func(err error) (*http.Response, error) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	if err := checkURL(req.URL, t.allowHTTP); err != nil {
		return refuse(err)
	}
	var sent atomic.Bool
	hop := req.Clone(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Store(true) },
	}))
	// Without it, the transport would send a request with an Idempotency-Key again by itself
	// when a connection breaks: whether a tool may run twice is not its business.
	hop.GetBody = nil
	if toFirstOrigin(req) {
		if err := t.settings.add(hop.Header); err != nil {
			return refuse(err)
		}
	}
	if _, set := hop.Header["User-Agent"]; !set {
		hop.Header.Set("User-Agent", "oneturn")
	}
	resp, err := t.base.RoundTrip(hop)
	if err != nil {
		// After the end of the context the request may be written yet, by another goroutine.
		if req.Response == nil && req.Context().Err() == nil && !sent.Load() {
			err = unsentError{err}
		}
		return nil, err
	}
	resp.Body = newBody(resp, t.maxBody, t.events)
	return resp, nil
}

// toFirstOrigin reports whether neither this request nor one before it was redirected to another
// origin.
func toFirstOrigin(req *http.Request) bool {
	for hop := req; hop.Response != nil && hop.Response.Request != nil; hop = hop.Response.Request {
		if !sameOrigin(hop.URL, hop.Response.Request.URL) {
			return false
		}
	}
	return true
}

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }
