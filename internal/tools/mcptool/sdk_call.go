package mcptool

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// returned is what a function of the MCP client has returned.
type returned[T any] struct {
	value T
	err   error
}

// async runs a function of the MCP client in a separate goroutine: it may not look at its context, and it parses
// untrusted input, so that its panic becomes an error.
func async[T any](f func() (T, error)) <-chan returned[T] {
	done := make(chan returned[T], 1)
	go func() {
		r := returned[T]{err: errVanished}
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("the MCP client panicked: %v: %w", p, errors.New(string(debug.Stack())))
			}
			done <- r
		}()
		r.value, r.err = f()
	}()
	return done
}

// errVanished is the error of a goroutine that ended without one.
var errVanished = errors.New("the MCP client ended without an answer")
