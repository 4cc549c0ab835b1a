package outbound

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// What an answer with a failure means: Failure by status and headers, FailureOf by a body whose status counts
// instead. meaningOf is the table; detail is the text of the server, bounded and redacted.

// Bounds of the description of a failure in an answer, in bytes.
const (
	maxFailure = 64 << 10
	maxDetail  = 2 << 10
)

// StatusError is in the chain of the error of an answer that is a failure.
type StatusError struct{ Status int }

// Error implements error. The surrounding [events.Error] has the message.
func (e *StatusError) Error() string { return "status " + strconv.Itoa(e.Status) }

// Failure makes an *[events.Error] of an answer that is one, by its status, by the header
// Oneturn-Error-Code, and by the text in its body: problem+json or the usual fields. It is
// retryable only by the server's word that it has refused to do anything. The body is not closed.
func (c *Client) Failure(op string, resp *http.Response) error {
	m, detail := meaningOf(resp.StatusCode), c.detail(resp)
	wait, valid := target.RetryAfter(resp.Header.Get(target.HeaderRetryAfter))
	if resp.StatusCode == http.StatusServiceUnavailable {
		m.refused = valid // without it, nothing confirms that nothing was done
	}
	if word := resp.Header.Get(target.HeaderErrorCode); word != "" {
		m = statusMeaning{code: target.CodeOf(word), refused: word == target.CodeRetryable}
	}
	err := error(&events.Error{Code: m.code, Op: op, Msg: m.text(resp.StatusCode, detail), Err: &StatusError{resp.StatusCode}})
	switch {
	case m.refused:
		return tools.RetryAfter(err, wait)
	case m.unknown:
		return tools.Unknown(err)
	}
	return err
}

// FailureOf is [Client.Failure] for an answer whose status is not meaningful: body is its failure as JSON, and
// a status in the body counts instead, if there is one.
func (c *Client) FailureOf(op string, body json.RawMessage) error {
	tree, err := events.Decode(body)
	if err != nil {
		tree = nil
	}
	status, m := statusOf(tree), statusMeaning{code: events.CodeToolError}
	detail := c.Clean(target.FailureText(tree))
	text := "the endpoint reports an error"
	if status != 0 {
		m = meaningOf(status)
		m.refused = m.refused && status != http.StatusServiceUnavailable
		text = m.text(status, detail)
	} else if detail != "" {
		text += ": " + detail
	}
	failed := error(&events.Error{Code: m.code, Op: op, Msg: text, Err: &StatusError{status}})
	switch {
	case m.refused:
		return tools.RetryAfter(failed, 0)
	case m.unknown:
		return tools.Unknown(failed)
	}
	return failed
}

// statusOf is the HTTP status that a failure names, 0 if it names none.
func statusOf(tree any) int {
	object, _ := tree.(map[string]any)
	for _, name := range []string{"status", "code", "status_code"} {
		if n, err := strconv.Atoi(fmt.Sprint(object[name])); err == nil && n >= 400 && n < 600 {
			return n
		}
	}
	return 0
}

// meaning of a status.
type statusMeaning struct {
	code    events.Code
	fix     string // what to do about it; "" if only the server knows
	refused bool   // nothing has happened
	unknown bool   // it may or may not have happened
}

func meaningOf(status int) statusMeaning {
	failed := events.CodeToolError
	switch status {
	case http.StatusBadRequest:
		return statusMeaning{code: events.CodeBadArgs}
	case http.StatusConflict, http.StatusUnprocessableEntity:
		return statusMeaning{code: events.CodeUserError}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return statusMeaning{code: failed, fix: "the credentials are not accepted: check the headers of the manifest and the files they come from"}
	case http.StatusNotFound, http.StatusGone:
		return statusMeaning{code: failed, fix: "no endpoint at this path: check the url of the manifest"}
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return statusMeaning{code: failed, fix: "it does not take this method: check the method of the manifest"}
	case http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return statusMeaning{code: failed, fix: "it does not take or give JSON"}
	case http.StatusRequestEntityTooLarge:
		return statusMeaning{code: events.CodeTooLarge, fix: "the arguments are too large for it"}
	case http.StatusTooManyRequests:
		return statusMeaning{code: failed, fix: "it takes no more calls at this rate", refused: true}
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return statusMeaning{code: events.CodeTimeout, unknown: true}
	case http.StatusMultipleChoices, http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusNotModified,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return statusMeaning{code: failed, fix: "it redirects without a location, or answers as to a cache: check the url of the manifest"}
	case http.StatusBadGateway:
		return statusMeaning{code: failed, unknown: true}
	}
	return statusMeaning{code: failed}
}

// text is the message for people and models: for their own mistakes only the text of the server.
func (m statusMeaning) text(status int, detail string) string {
	theirs := m.code == events.CodeBadArgs || m.code == events.CodeUserError
	if theirs && detail != "" {
		return detail
	}
	parts := []string{fmt.Sprintf("the endpoint answers with status %d", status)}
	if name := http.StatusText(status); name != "" {
		parts[0] += " (" + name + ")"
	}
	for _, part := range []string{m.fix, detail} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if m.unknown {
		parts = append(parts, Unknown)
	}
	return strings.Join(parts, ": ")
}

// detail is the text in the body of a failure: bounded, printable, without the secrets that were sent.
func (c *Client) detail(resp *http.Response) string {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxFailure)) // a part is better than nothing
	kind, _, _ := target.ContentKind(resp.Header.Get("Content-Type"))
	if value, why := target.JSON(data); why == "" && value != nil && (kind == target.KindJSON || value[0] == '{' || value[0] == '[') {
		tree, err := events.Decode(value)
		if err != nil {
			return ""
		}
		return c.Clean(target.FailureText(tree))
	}
	if kind == target.KindText {
		return c.Clean(string(data))
	}
	return ""
}

// Clean makes a text of the server safe to display: printable, at most 2 KiB, and without the
// secrets that were sent to it.
func (c *Client) Clean(text string) string {
	text = c.Redact(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "…"
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text))
}
