package tools

import "errors"

// retryable marks an error whose call had no effect.
type retryable struct{ error }

func (r retryable) Unwrap() error { return r.error }

// Retryable marks err as the tool's word that nothing has happened, so that the call may be
// tried again. It returns nil for nil.
func Retryable(err error) error {
	if err == nil {
		return nil
	}
	return retryable{err}
}

// IsRetryable reports whether an error in err's chain was marked by [Retryable].
func IsRetryable(err error) bool {
	if err == nil {
		return false
	}
	var r retryable
	return errors.As(err, &r)
}
