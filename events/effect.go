package events

import "slices"

// Effect is what a tool may do to the world, and so what may happen after a crash while it ran.
type Effect string

// The effects, from the strictest.
const (
	EffectUnsafe     Effect = "unsafe"     // entered at most once; the default
	EffectReplay     Effect = "replay"     // entered again only while it waits for an answer; the default of UI tools
	EffectKeyed      Effect = "keyed"      // may be entered again with the same idempotency key
	EffectIdempotent Effect = "idempotent" // entered at least once
	EffectNone       Effect = "none"       // reads only; entered at least once
)

// EffectState is what is known of the effect of a call that has failed although its tool was entered. "" is a failure that the tool
// reports itself.
type EffectState string

// The states.
const (
	EffectHappened EffectState = "happened" // the tool has returned, and its result is not used
	EffectInDoubt  EffectState = "in_doubt" // it may or may not have happened
)

// EffectProgram is the effect of the claim of a program: the program may be continued at any time, because its
// steps have their own effects. No tool can declare it.
const EffectProgram Effect = "program"

// Effects returns the effects that a tool can declare, from the strictest.
func Effects() []Effect {
	return []Effect{EffectUnsafe, EffectReplay, EffectKeyed, EffectIdempotent, EffectNone}
}

// Reenterable reports whether a tool may be entered again after it has begun. An effect that this
// version does not know is treated as unsafe.
func (e Effect) Reenterable() bool {
	switch e {
	case EffectReplay, EffectKeyed, EffectIdempotent, EffectNone, EffectProgram:
		return true
	case EffectUnsafe:
	}
	return false
}

// Stricter returns the effect that allows less. An effect that this version does not know is as strict
// as unsafe; "" sets no limit. A program and a tool have no common effect: both together are unsafe.
func (e Effect) Stricter(other Effect) Effect {
	if other != "" && e != other && (e == EffectProgram || other == EffectProgram) {
		return EffectUnsafe
	}
	if other != "" && other.leniency() < e.leniency() {
		return other
	}
	return e
}

func (e Effect) leniency() int { return max(0, slices.Index(Effects(), e)) }
