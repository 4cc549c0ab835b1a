package auth

import (
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/oneturn/oneturn/diag"
)

// Origins are the pages that may use the gateway from a browser: pages of the gateway itself, whose origin is the host of
// the request, and pages of listed origins. A nil *Origins allows the pages of the gateway alone.
type Origins struct{ allowed map[string]bool }

// NewOrigins returns a list of origins, for example https://app.example. An error is a [*diag.Error].
func NewOrigins(list []string) (*Origins, error) {
	o := &Origins{allowed: map[string]bool{}}
	for _, text := range list {
		origin, ok := parseOrigin(strings.TrimSuffix(text, "/"))
		switch {
		case strings.Contains(text, "*"):
			return nil, diag.Errorf("configuration", "origins", "list each origin, for example https://app.example", "%q is a pattern", text)
		case !ok && strings.Contains(text, "://") && !isASCII(text):
			return nil, diag.Errorf("configuration", "origins", "write its name as browsers send it, xn--…", "%q has letters that are not ASCII", text)
		case !ok:
			return nil, diag.Errorf("configuration", "origins", "write scheme://host or scheme://host:port, for example https://app.example", "%q is not an origin", text)
		}
		o.allowed[origin] = true
	}
	return o, nil
}

// Check refuses a request from a page that is not allowed, and every request whose origin a browser hides ("null"). A
// request without an origin does not come from a page, so nothing restricts it here. An error is an [*Error].
//
// WebSockets need it before they are accepted: browsers apply no other rule to them.
func (o *Origins) Check(r *http.Request) error {
	if sent := requestOf(r); sent.Origin != "" && !o.allows(sent) {
		return forbiddenOrigin()
	}
	return nil
}

func forbiddenOrigin() *Error {
	return forbidden("the origin of the page is not allowed: add it to the origins of the gateway")
}

// originOf returns the origin of a request, "" without one. Several are not the origin of any page.
func originOf(r *http.Request) string {
	switch values := r.Header["Origin"]; len(values) {
	case 0:
		return ""
	case 1:
		if values[0] != "" {
			return values[0]
		}
	}
	return "null"
}

// allows reports whether the page that sends a request may do so.
func (o *Origins) allows(r Request) bool {
	normal, ok := parseOrigin(r.Origin)
	if !ok {
		return false
	}
	if o != nil && o.allowed[normal] {
		return true
	}
	scheme, _, _ := strings.Cut(normal, "://")
	if r.Secure && scheme != "https" { // such a page may be forged on the way; without TLS here, a proxy may have it
		return false
	}
	own, ok := parseOrigin(scheme + "://" + r.Host)
	return ok && own == normal
}

// parseOrigin returns an origin in lower case and without the default port of its scheme. Browsers send names in ASCII; other
// letters could be lower-cased to them.
func parseOrigin(text string) (string, bool) {
	if !isASCII(text) {
		return "", false
	}
	u, err := url.Parse(strings.ToLower(text))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Scheme+"://"+u.Host != strings.ToLower(text) {
		return "", false
	}
	host := u.Host
	switch port := u.Port(); {
	case strings.HasSuffix(host, ":"):
		return "", false
	case u.Scheme == "http" && port == "80", u.Scheme == "https" && port == "443":
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host, true
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}
