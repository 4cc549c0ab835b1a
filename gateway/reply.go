package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/feed"
	"github.com/oneturn/oneturn/internal/searchbudget"
	"github.com/oneturn/oneturn/internal/throttle"
)

// Every reply that is not a stream or a blob is one JSON object with status, code and message. An endpoint returns a refusal
// as its error; refusalOf decides how any other error is answered, so that no cause reaches a client.

// refusedError is a refusal.
type refusedError struct {
	status  int
	code    string
	message string // for the client: what is wrong and the fix
	retry   time.Duration
	header  http.Header // additional headers, nil for none
	err     error       // the cause, for logs alone
}

// Error implements error, for logs.
func (p *refusedError) Error() string {
	if p.err != nil {
		return p.code + ": " + p.err.Error()
	}
	return p.code + ": " + p.message
}

// Unwrap returns the cause.
func (p *refusedError) Unwrap() error { return p.err }

// refuse makes a refusal.
func refuse(status int, code, message string) *refusedError {
	return &refusedError{status: status, code: code, message: message}
}

// The codes of refusals that have no other home.
const (
	codeBadJSON      = "bad_json"
	codeMissingField = "missing_field"
	codeForbidden    = string(auth.CodeForbidden)
	codeUnavailable  = string(auth.CodeUnavailable)
	codeRateLimited  = string(auth.CodeRateLimited)
	codeInternal     = "internal"
	codeUnknown      = string(events.AnswerUnknown)
)

// unavailable is the refusal for what cannot be read or stored now.
func unavailable(cause error) *refusedError {
	return &refusedError{
		status: http.StatusServiceUnavailable, code: codeUnavailable, retry: time.Second, err: cause,
		message: "the gateway cannot read or store this now: try again, a repeated request is harmless",
	}
}

// draining is the refusal of a gateway that stops.
func draining() *refusedError {
	return &refusedError{
		status: http.StatusServiceUnavailable, code: codeUnavailable, retry: time.Second,
		message: "the gateway is stopping: connect again, another one answers",
	}
}

// refusalOf returns how an error is answered. A search that waited for others, or while the journal cannot be followed, is not caused by
// its user.
func (g *Gateway) refusalOf(err error) *refusedError {
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused
	}
	var denied *auth.Error
	if errors.As(err, &denied) {
		return &refusedError{status: denied.Status(), code: string(denied.Code), message: denied.Msg, retry: denied.RetryAfter, header: denied.Header(), err: denied.Err}
	}
	var busy *searchbudget.BusyError
	if errors.As(err, &busy) && busy.After > 0 && g.current.Load().feeds.Ready() == nil {
		of := "tenant"
		if busy.User {
			of = "user"
		}
		return &refusedError{
			status: http.StatusTooManyRequests, code: codeRateLimited, retry: time.Duration(busy.Seconds()) * time.Second, err: err,
			message: "this " + of + " reads too much: try again later, or ask for less",
		}
	}
	if errors.Is(err, idempotency.ErrTooMany) {
		return refuse(http.StatusBadRequest, "too_many", "the chat has too many turns to search for the id: name the run_id of its turn")
	}
	return unavailable(err)
}

// refusalOfBody is the refusal of a body that cannot be decoded.
func refusalOfBody(err error) *refusedError {
	var missing *events.MissingFieldError
	if errors.As(err, &missing) {
		return refuse(http.StatusBadRequest, codeMissingField, missing.Error())
	}
	var syntax *events.SyntaxError
	if errors.As(err, &syntax) {
		return refuse(http.StatusBadRequest, codeBadJSON, syntax.Error()+": send one JSON object")
	}
	var wrong *events.Error
	if errors.As(err, &wrong) && wrong.Code == events.CodeTooLarge {
		return refuse(http.StatusRequestEntityTooLarge, "too_large", wrong.Msg)
	}
	if errors.As(err, &wrong) && wrong.Msg != "" {
		return refuse(http.StatusBadRequest, codeBadJSON, wrong.Msg)
	}
	return refuse(http.StatusBadRequest, codeBadJSON, "the body cannot be read: send one JSON object")
}

// missingField is the refusal of a body or frame that lacks a field.
func missingField(name string) *refusedError {
	return refuse(http.StatusBadRequest, codeMissingField, name+" is missing: add it to the JSON object")
}

// seconds is when to try again, at least 1; 0 if that is not known.
func (p *refusedError) seconds() int {
	return int((max(p.retry, 0) + time.Second - 1) / time.Second)
}

// write sends the refusal.
func (p *refusedError) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.header)
	if p.retry > 0 && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(p.seconds()))
	}
	writeJSON(w, p.status, struct {
		Status  int    `json:"status"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}{p.status, p.code, p.message})
}

// writeJSON sends a reply that no cache stores and no browser guesses the type of.
func writeJSON(w http.ResponseWriter, status int, body any) {
	data, err := encode(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"status":500,"code":"internal","message":"the reply cannot be encoded"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_ = writePieces(w, data) // a client that is gone gets nothing
}

// replyPiece is how much of a reply has the time of one write: a slow client gets all of it, and one that reads nothing is dropped.
const replyPiece = 32 << 10

// writePieces writes a part of a reply. The deadline of the last piece stays: the server has not sent all of it yet.
func writePieces(w http.ResponseWriter, data []byte) error {
	for {
		n := min(len(data), replyPiece)
		limitWrite(w)
		if _, err := w.Write(data[:n]); err != nil {
			return err //nolint:wrapcheck // the client is gone
		}
		if data = data[n:]; len(data) == 0 {
			return nil
		}
	}
}

// limitWrite gives the next write a deadline.
func limitWrite(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // a writer without deadlines writes without
}

// encode writes JSON without the escapes for HTML, which make events up to six times as long.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err //nolint:wrapcheck // the caller names what it encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// logRefusal logs a refusal that the client has not caused: a failure of the gateway, of NATS or of the keys of tokens.
func (g *Gateway) logRefusal(ctx context.Context, endpoint, app string, p *refusedError) {
	if p.err == nil || p.status < http.StatusInternalServerError || errors.Is(p.err, context.Canceled) || errors.Is(p.err, errCloseByClient) {
		return
	}
	g.lines.Log(ctx, g.o.Logger, time.Now(), "gateway "+endpoint, app, throttle.Several, slog.LevelWarn, "a request failed", endpointLabel, endpoint, "app", events.Clip(app), "err", feed.Reason(p.err))
}
