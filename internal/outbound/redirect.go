package outbound

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// errRedirect is in the chain of the errors of redirects that are not followed.
var errRedirect = errors.New("the redirect is not followed")

// errURL is in the chain of the errors of URLs that no request may go to.
var errURL = errors.New("the URL cannot be used")

// redirects returns the rules of redirects. Only 307 and 308 are followed for a request with a
// body; the others would make a GET of it, whose answer is not the answer of the tool.
func redirects(allowHTTP bool) func(req *http.Request, via []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		first := via[0]
		refuse := func(why string) error { return fmt.Errorf("%w: %s", errRedirect, why) }
		switch {
		case len(via) > maxRedirects:
			return refuse(fmt.Sprintf("%d are followed at most", maxRedirects))
		case req.Method != first.Method:
			return refuse(fmt.Sprintf("status %d makes a %s of a %s, which 307 and 308 do not; %s", req.Response.StatusCode, req.Method, first.Method, Unknown))
		case first.URL.Scheme == "https" && req.URL.Scheme != "https":
			return refuse("it leads from https to another scheme")
		}
		if err := checkURL(req.URL, allowHTTP); err != nil {
			return fmt.Errorf("%w: %w", errRedirect, err)
		}
		for _, hop := range append(via[1:len(via):len(via)], req) {
			if !sameOrigin(first.URL, hop.URL) {
				keepPublic(req.Header)
				break
			}
		}
		return nil
	}
}

// keepPublic drops what another origin has no right to know: credentials, names of users and
// chats, the URL of the manifest (Referer), which may hold a key. What keeps a tool from doing its work twice stays.
func keepPublic(h http.Header) {
	for name := range h {
		switch http.CanonicalHeaderKey(name) {
		case "Accept", "Content-Type", "User-Agent", "Idempotency-Key", "X-Fencing-Token", "Traceparent":
		default:
			delete(h, name)
		}
	}
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// checkURL checks whether a request may go to a URL as it is written.
func checkURL(u *url.URL, allowHTTP bool) error {
	var why string
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		why = "it has to begin with https://"
	case u.Scheme == "http" && !allowHTTP:
		why = "it begins with http://: use https, or set allow_http: true in the manifest"
	case u.Hostname() == "":
		why = "host is missing"
	case u.User != nil:
		why = "it holds a user or a password: send them in a header that is read from a file"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s", errURL, why)
}
