package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Request is what an [Authenticator] sees of a request.
type Request struct {
	Token  string // "" without one
	Host   string // the Host header
	Origin string // the Origin header; "" if the request does not come from a page
	Secure bool   // came by TLS, as far as is known
	// Forwarded are the addresses and hosts that proxies name as the origin of the request.
	Forwarded []string
}

// requestOf returns what an authenticator sees of a request, but for its token.
func requestOf(r *http.Request) Request {
	sent := Request{Host: r.Host, Origin: originOf(r), Secure: isSecure(r)}
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		for _, value := range r.Header.Values(name) {
			for host := range strings.SplitSeq(value, ",") {
				sent.Forwarded = append(sent.Forwarded, strings.TrimSpace(host))
			}
		}
	}
	sent.Forwarded = append(sent.Forwarded, r.Header.Values("Forwarded")...)
	return sent
}

// isSecure reports whether a request came by TLS, to this program or to a proxy.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// Authenticator decides to whom a token belongs.
type Authenticator interface {
	// Authenticate returns who sends a request. Errors are an [*Error]: [ErrTokenMissing], [ErrTokenInvalid],
	// [ErrTokenExpired] or, if it cannot be decided now, [ErrUnavailable]; in development also [ErrForbidden].
	Authenticate(ctx context.Context, r Request) (*Identity, error)
}

// Check takes the token out of a request ([TakeToken]) and authenticates it. An error is an [*Error].
func Check(r *http.Request, a Authenticator, from Source) (*Identity, error) {
	token, err := TakeToken(r, from)
	if err != nil {
		return nil, err
	}
	sent := requestOf(r)
	sent.Token = token
	return a.Authenticate(r.Context(), sent)
}

// Chain asks several authenticators, the next one if a token is not valid for the one before.
type Chain []Authenticator

// Authenticate implements [Authenticator].
func (c Chain) Authenticate(ctx context.Context, r Request) (*Identity, error) {
	err := error(missing())
	for _, a := range c {
		var id *Identity
		id, err = a.Authenticate(ctx, r)
		if !errors.Is(err, ErrTokenInvalid) {
			return id, err
		}
	}
	return nil, err
}

// Ready reports why one of the authenticators cannot decide anything yet, nil if all can.
func (c Chain) Ready() error {
	for _, a := range c {
		if err := Ready(a); err != nil {
			return err
		}
	}
	return nil
}

// Ready reports why an authenticator cannot decide anything yet: one that has a method Ready, such as a [*JWT].
func Ready(a Authenticator) error {
	if starts, ok := a.(interface{ Ready() error }); ok {
		return starts.Ready()
	}
	return nil
}
