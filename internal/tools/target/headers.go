package target

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// Headers of calls and answers, one spelling for NATS and HTTP: Identity writes the ids of a call, escaped,
// Timeout the time that is left; CodeOf and RetryAfter read answers.

// Headers by which a tool outside the worker identifies its call, of a NATS request and of an
// HTTP request are the same. Their values are escaped by [Escape].
const (
	HeaderIdempotencyKey = "Oneturn-Idempotency-Key" // the same for every run of the call
	HeaderFencingToken   = "Oneturn-Fencing-Token"   // grows with each owner of the turn
	HeaderEpoch          = "Oneturn-Epoch"           // 1 for the first owner, one more for each takeover
	HeaderAttempt        = "Oneturn-Attempt"         // 1 for the first attempt of this run
	HeaderCall           = "Oneturn-Call"
	HeaderTool           = "Oneturn-Tool"
	HeaderTurn           = "Oneturn-Turn" // turn key
	HeaderApp            = "Oneturn-App"
	HeaderChat           = "Oneturn-Chat"
	HeaderUser           = "Oneturn-User" // not sent when the user is unknown
	HeaderWorkflow       = "Oneturn-Workflow"
	HeaderAgent          = "Oneturn-Agent"
	HeaderDepth          = subjects.HeaderDepth // not sent for a call that is in no program
	HeaderTrace          = "traceparent"
)

// Headers of the conversation about a call.
const (
	HeaderTimeout    = "Oneturn-Timeout"    // milliseconds that the call may take from now on
	HeaderKind       = "Oneturn-Kind"       // NATS: what a message is that is not the answer
	HeaderErrorCode  = "Oneturn-Error-Code" // of an answer that is a failure; it wins over any other code
	HeaderRetryAfter = "Retry-After"        // seconds, or the date, to wait before a call that was refused is tried again
)

// Headers that HTTP endpoints of other makers know.
const (
	HTTPIdempotencyKey = "Idempotency-Key"
	HTTPFencingToken   = "X-Fencing-Token"
)

// CodeRetryable is the value of [HeaderErrorCode] by which a tool reports that nothing has happened.
const CodeRetryable = "retryable"

// Header is one header of a request.
type Header struct{ Name, Value string }

// Identity returns the headers that identify the call of a tool, escaped. Headers that the
// call knows no value for are missing.
func Identity(call *tools.Call) []Header {
	all := [...]Header{
		{HeaderIdempotencyKey, call.IdempotencyKey},
		{HeaderFencingToken, strconv.FormatUint(call.FencingToken, 10)},
		{HeaderEpoch, strconv.Itoa(call.Epoch)},
		{HeaderAttempt, strconv.Itoa(call.Attempt)},
		{HeaderCall, call.CallID},
		{HeaderTool, call.Name},
		{HeaderTurn, call.Turn.Turn},
		{HeaderApp, call.Turn.App},
		{HeaderChat, call.Turn.Chat},
		{HeaderUser, call.UserID},
		{HeaderWorkflow, call.Workflow},
		{HeaderAgent, call.Agent},
		{HeaderTrace, call.Trace},
		{HeaderDepth, depth(call)},
	}
	headers := make([]Header, 0, len(all))
	for _, h := range all {
		if h.Value != "" {
			headers = append(headers, Header{h.Name, Escape(h.Value)})
		}
	}
	return headers
}

// depth is the value of [HeaderDepth], "" for a call that is in no program.
func depth(call *tools.Call) string {
	if call.Depth <= 0 {
		return ""
	}
	return strconv.Itoa(call.Depth)
}

// CodeOf is what [HeaderErrorCode] means: codes that are not a tool's to give count
// as tool_error.
func CodeOf(word string) events.Code {
	switch code := events.Code(word); code {
	case events.CodeBadArgs, events.CodeUserError, events.CodeTimeout, events.CodeTooLarge:
		return code
	default:
		return events.CodeToolError
	}
}

// MaxRetryAfter bounds how long a tool may ask to wait before it is called again.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter reads the value of [HeaderRetryAfter], seconds or a date, and reports whether it is one of them.
func RetryAfter(text string) (wait time.Duration, valid bool) {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 && !strings.ContainsAny(text, "xXpPnN") {
		return RetrySeconds(seconds), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), MaxRetryAfter), true
	}
	return 0, false
}

// RetrySeconds is a number of seconds to wait before the next call: 0 if it is not positive, [MaxRetryAfter] at most.
func RetrySeconds(seconds float64) time.Duration {
	if !(seconds > 0) { // nor is not a number
		return 0
	}
	return time.Duration(min(seconds, MaxRetryAfter.Seconds()) * float64(time.Second))
}

// Timeout returns the value of [HeaderTimeout] for a call whose end is known ([tools.End]); it is at least 1.
func Timeout(ctx context.Context) (value string, ok bool) {
	end, ok := tools.End(ctx)
	if !ok {
		return "", false
	}
	return strconv.FormatInt(max(time.Until(end).Milliseconds(), 1), 10), true
}

// Escape writes an id as the value of a header. Ids come from outside: every byte that is not
// printable ASCII, spaces and the percent sign become %XX, as in a URL, so that no id can add a
// header or end the headers. Ids without such bytes stay as they are.
func Escape(id string) string {
	plain := func(c byte) bool { return c > ' ' && c < 0x7f && c != '%' }
	escaped := 0
	for i := range len(id) {
		if !plain(id[i]) {
			escaped++
		}
	}
	if escaped == 0 {
		return id
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(id)+2*escaped)
	for i := range len(id) {
		if c := id[i]; plain(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&0xf])
		}
	}
	return string(out)
}
