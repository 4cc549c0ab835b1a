package tools

import (
	"errors"
	"time"
)

// retryable marks an error whose call had no effect.
type retryable struct {
	error

	after time.Duration
}

func (r retryable) Unwrap() error { return r.error }

// Retryable marks err as the report of the tool that nothing has happened, so that the call may be
// retried. It returns nil for nil.
func Retryable(err error) error { return RetryAfter(err, 0) }

// RetryAfter is [Retryable] for a tool that knows how long to wait before: at least that long.
func RetryAfter(err error, wait time.Duration) error {
	if err == nil {
		return nil
	}
	return retryable{err, wait}
}

// IsRetryable reports whether an error in err's chain was marked by [Retryable] or [RetryAfter].
func IsRetryable(err error) bool {
	_, is := RetryDelay(err)
	return is
}

// RetryDelay returns how long err asks to wait at least before the call is tried again, and
// whether it may be tried again at all.
func RetryDelay(err error) (wait time.Duration, retryable bool) {
	if err == nil {
		return 0, false
	}
	r, is := retryableIn(err)
	return r.after, is
}

func retryableIn(err error) (retryable, bool) {
	var r retryable
	is := errors.As(err, &r)
	return r, is
}
