package outbound

import (
	"net/http"
	"strconv"

	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Identify sets the headers by which an endpoint knows the call that a request is for, and until
// when the caller waits for the answer.
func Identify(req *http.Request, call *tools.Call) {
	for _, h := range target.Identity(call) {
		req.Header.Set(h.Name, h.Value)
	}
	if call.IdempotencyKey != "" {
		req.Header.Set(target.HTTPIdempotencyKey, target.Escape(call.IdempotencyKey))
	}
	req.Header.Set(target.HTTPFencingToken, strconv.FormatUint(call.FencingToken, 10))
	if timeout, ok := target.Timeout(req.Context()); ok {
		req.Header.Set(target.HeaderTimeout, timeout)
	}
}

// Anonymous takes what names a turn and its people out of the headers of a request again: for
// endpoints of third parties, which have no use for it.
func Anonymous(h http.Header) {
	for _, name := range []string{
		target.HeaderCall, target.HeaderTool, target.HeaderTurn, target.HeaderApp, target.HeaderChat, target.HeaderUser,
		target.HeaderWorkflow, target.HeaderAgent,
	} {
		h.Del(name)
	}
}
