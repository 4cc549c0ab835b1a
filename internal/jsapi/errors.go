package jsapi

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Error codes of the JetStream API that nats.go does not name.
const (
	AccountFull           jetstream.ErrorCode = 10002 // resource limits of the account
	InsufficientResources jetstream.ErrorCode = 10023
	StorageFull           jetstream.ErrorCode = 10047
	StoreFailed           jetstream.ErrorCode = 10077 // a limit of the stream, or its disk
	HeaderTooLong         jetstream.ErrorCode = 10097

	sequenceNotFound    jetstream.ErrorCode = 10043
	messageDeleteFailed jetstream.ErrorCode = 10057
)

// Code returns the error code with which the server refused a request, 0 if err is not an error of the server.
func Code(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return 0
	}
	return api.ErrorCode
}

// Refused returns why a stream refuses a message, and refuses it again unless its limits change; "" if err does not
// decide that. A disk or an account that is full does not: space may be freed.
func Refused(err error) (why string) {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return "would not take so large a message (max_payload of the server)"
	case !errors.As(err, &api):
		return ""
	case api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return "does not take so large a message"
	case api.ErrorCode == HeaderTooLong:
		return "does not take so long a header"
	case api.ErrorCode == StoreFailed && strings.HasPrefix(api.Description, "maximum "):
		return "is full (" + api.Description + ")"
	}
	return ""
}

// OutOfSpace reports whether the server has refused a write because a stream, the account or the disk is full.
func OutOfSpace(err error) bool {
	switch Code(err) {
	case StoreFailed, AccountFull, InsufficientResources, StorageFull:
		return true
	default:
		return false
	}
}
