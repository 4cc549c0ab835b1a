package mcptool

import (
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Keys of `_meta` in a request, by which a server identifies the call. They do not name its user.
const (
	MetaIdempotencyKey = "oneturn/idempotency_key" // the same for every run of the call
	MetaFencingToken   = "oneturn/fencing_token"   // digits as text: it grows with each owner of the turn, beyond what a float holds
	MetaEpoch          = "oneturn/epoch"           // 1 for the first owner, one more for each takeover
	MetaAttempt        = "oneturn/attempt"         // 1 for the first attempt of this run
	MetaCall           = "oneturn/call"
	MetaDepth          = "oneturn/depth" // programs that the call is in; not sent for a call that is in none
)

// Keys of `_meta` in a result with isError, with which a server classifies the error.
const (
	MetaCode       = "oneturn/code"        // bad_args, user_error or tool_error
	MetaRetryable  = "oneturn/retryable"   // true: nothing has happened, the call may be tried again
	MetaRetryAfter = "oneturn/retry_after" // seconds to wait before that
)

// meta identifies the call for the server: see [MetaIdempotencyKey] and the keys after it.
func (u *activeCall) meta() mcp.Meta {
	m := mcp.Meta{
		MetaIdempotencyKey: u.call.IdempotencyKey,
		MetaFencingToken:   strconv.FormatUint(u.call.FencingToken, 10),
		MetaEpoch:          u.call.Epoch,
		MetaAttempt:        u.call.Attempt,
		MetaCall:           u.call.CallID,
		"progressToken":    u.token,
	}
	if u.call.Trace != "" {
		m["traceparent"] = u.call.Trace
	}
	if u.call.Depth > 0 {
		m[MetaDepth] = u.call.Depth
	}
	return m
}
