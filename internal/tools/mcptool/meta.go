package mcptool

import (
	"runtime/debug"
	"strconv"
)

// Keys of `_meta` in a request, by which a server identifies the call. They do not name its user.
const (
	MetaIdempotencyKey = "oneturn/idempotency_key" // the same for every run of the call
	MetaFencingToken   = "oneturn/fencing_token"   // digits as text: it grows with each owner of the turn, beyond what a float holds
	MetaEpoch          = "oneturn/epoch"           // 1 for the first owner, one more for each takeover
	MetaAttempt        = "oneturn/attempt"         // 1 for the first attempt of this run
	MetaCall           = "oneturn/call"
)

// Keys of `_meta` in a result with isError, with which a server classifies the error.
const (
	MetaCode       = "oneturn/code"        // bad_args, user_error or tool_error
	MetaRetryable  = "oneturn/retryable"   // true: nothing has happened, the call may be tried again
	MetaRetryAfter = "oneturn/retry_after" // seconds to wait before that
)

func formatToken(token uint64) string { return strconv.FormatUint(token, 10) }

// version of this module, as the client reports it.
func version() string {
	const unknown = "devel"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	const module = "github.com/oneturn/oneturn"
	if info.Main.Path == module && info.Main.Version != "" {
		return info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return unknown
}
