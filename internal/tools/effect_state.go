package tools

import (
	"errors"

	"github.com/oneturn/oneturn/events"
)

// effectError is an error of a call whose effect has happened, or may have.
type effectError struct {
	error

	state events.EffectState
}

func (e effectError) Unwrap() error { return e.error }

// Returned marks err as the error of a call that has returned a result which cannot be used: its effect has happened. It returns
// nil for nil.
func Returned(err error) error { return inState(err, events.EffectHappened) }

// Unknown marks err as the error of a call that may have ended after its effect or before it: its process died, or the connection to
// its server broke. It returns nil for nil.
func Unknown(err error) error { return inState(err, events.EffectInDoubt) }

func inState(err error, state events.EffectState) error {
	if err == nil {
		return nil
	}
	return effectError{err, state}
}

// EffectState returns with what [Returned] or [Unknown] have marked an error in err's chain, "" if there is none: then the tool
// itself reports that it has failed, or was not entered.
func EffectState(err error) events.EffectState {
	e, _ := errors.AsType[effectError](err)
	return e.state
}
