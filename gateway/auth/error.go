package auth

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Code names why a request is refused. Codes are part of the contract with frontends and never change their spelling;
// WebSockets close with them as the reason.
type Code string

// The codes of refusals.
const (
	CodeTokenMissing Code = "token_missing" // 401: the request has no token
	CodeTokenInvalid Code = "token_invalid" // 401: the token is not valid, or not yet
	CodeTokenExpired Code = "token_expired" // 401: the token was valid
	CodeForbidden    Code = "forbidden"     // 403: the token does not allow it
	CodeMissingField Code = "missing_field" // 400: the request must name what the token leaves open
	CodeRateLimited  Code = "rate_limited"  // 429: too many requests or connections of this user
	CodeUnavailable  Code = "unavailable"   // 503: the gateway cannot decide it now, or is full
)

// Error refuses a request.
type Error struct {
	Code Code
	Msg  string // for the client: what is wrong and how to fix it; no addresses, no secrets
	// RetryAfter is when the same request may be accepted; 0 for never or unknown.
	RetryAfter time.Duration
	Err        error // the cause, for logs alone; may be nil
	// Reason is why a token is refused, for the operator; "" for other refusals.
	Reason Reason
}

// Errors to compare with [errors.Is], one for each code.
var (
	ErrTokenMissing = &Error{Code: CodeTokenMissing}
	ErrTokenInvalid = &Error{Code: CodeTokenInvalid}
	ErrTokenExpired = &Error{Code: CodeTokenExpired}
	ErrForbidden    = &Error{Code: CodeForbidden}
	ErrMissingField = &Error{Code: CodeMissingField}
	ErrRateLimited  = &Error{Code: CodeRateLimited}
	ErrUnavailable  = &Error{Code: CodeUnavailable}
)

// Error implements error: the code, the message and the cause. It is a text for logs, [Error.Msg] is for clients.
func (e *Error) Error() string {
	parts := []string{string(e.Code)}
	if e.Msg != "" {
		parts = append(parts, e.Msg)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an [Error] of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error) // one link: errors.Is walks the chain
	return ok && t.Code == e.Code
}

// Status returns the HTTP status of the code.
func (e *Error) Status() int {
	switch e.Code {
	case CodeTokenMissing, CodeTokenInvalid, CodeTokenExpired:
		return http.StatusUnauthorized
	case CodeForbidden:
		return http.StatusForbidden
	case CodeMissingField:
		return http.StatusBadRequest
	case CodeRateLimited:
		return http.StatusTooManyRequests
	default:
		return http.StatusServiceUnavailable
	}
}

// Header returns the headers of the refusal: WWW-Authenticate with 401, Retry-After in whole seconds if it is known.
func (e *Error) Header() http.Header {
	h := http.Header{}
	if e.Status() == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", Challenge)
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(e.RetryAfter.Seconds())), 10))
	}
	return h
}

// Challenge is the WWW-Authenticate header of every 401, by RFC 6750.
const Challenge = `Bearer error="invalid_token"`

// WriteError answers a request with a refusal: its status and headers, and a JSON object of status, code and message.
func WriteError(w http.ResponseWriter, e *Error) {
	h := w.Header()
	maps.Copy(h, e.Header())
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(e.Status())
	_ = json.NewEncoder(w).Encode(struct { //nolint:errchkjson // strings and an int; a client that is gone gets nothing
		Status  int    `json:"status"`
		Code    Code   `json:"code"`
		Message string `json:"message"`
	}{e.Status(), e.Code, e.Msg})
}

func invalid(reason Reason, msg string) *Error {
	return &Error{Code: CodeTokenInvalid, Msg: msg, Reason: reason}
}

func missing() *Error {
	return &Error{Code: CodeTokenMissing, Reason: ReasonMissing, Msg: "the request has no token: send the header Authorization: Bearer TOKEN"}
}

func expired() *Error {
	return &Error{Code: CodeTokenExpired, Reason: ReasonExpired, Msg: "the token has expired: get a new one"}
}

func forbidden(msg string) *Error { return &Error{Code: CodeForbidden, Msg: msg} }
