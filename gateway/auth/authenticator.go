package auth

import (
	"context"
	"errors"
	"net/http"
)

// Request is what an [Authenticator] sees of a request.
type Request struct {
	Token  string // "" without one
	Host   string // the Host header
	Origin string // the Origin header; "" if the request does not come from a page
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
	return a.Authenticate(r.Context(), Request{Token: token, Host: r.Host, Origin: originOf(r)})
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
