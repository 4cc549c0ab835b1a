package tool

import (
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
)

// Errors that end the wait for an answer. Compare with [errors.Is].
var (
	// ErrExpired means that the time for an answer has passed. A tool may continue without one;
	// if it returns the error, the turn ends as expired.
	ErrExpired error = events.ErrExpired
	// ErrParked means that this run of the tool ends here, because the turn is parked: another
	// run gets the answer. It is the cause of the context as well.
	ErrParked = tools.ErrParked
)

// UserError returns an error that ends the turn as user_error: the request is invalid, and msg is
// the text that people and the agent read. Any other error ends the turn as tool_error.
func UserError(msg string) error { return &events.Error{Code: events.CodeUserError, Msg: msg} }

// Refuse returns the error with which a check of calls or results refuses one: the turn ends as
// guardrail. People and the agent read the reason, so it must contain no value of the call.
func Refuse(reason string) error { return &guards.Refusal{Reason: reason} }

// Retryable marks err as one before which nothing has happened, so that the call may be tried
// again, up to the attempts that the tool has. It returns nil for nil.
func Retryable(err error) error { return tools.Retryable(err) }

// RetryAfter is [Retryable] with the shortest time to wait before the next attempt.
func RetryAfter(err error, wait time.Duration) error { return tools.RetryAfter(err, wait) }

// authorError is an error that the author of the tool has to correct.
func authorError(op, msg string, err error) error {
	return &events.Error{Code: events.CodeToolError, Op: op, Msg: msg, Err: err}
}
