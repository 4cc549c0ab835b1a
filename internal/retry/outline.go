package retry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// Outline is what a retry would do with the calls of a program.
type Outline struct {
	Calls []Call // in program order; calls of nested programs that run again follow their call
}

// Call is a call of the program as a retry sees it.
type Call struct {
	Call     string        `json:"call"` // id in the program
	ToolName string        `json:"tool_name"`
	Copied   bool          `json:"copied"`           // it keeps its result, and does not run
	From     string        `json:"from,omitempty"`   // tool_call_id of the call that has run
	State    State         `json:"state"`            // how it ended before
	Code     events.Code   `json:"code,omitempty"`   // why it failed
	Effect   events.Effect `json:"effect,omitempty"` // of its tool when it was called
	// EffectState is what its response states of its effect.
	EffectState events.EffectState `json:"effect_state,omitempty"`
	// Uncertain is set for a call that runs, although its effect may have happened before: only with the consent of the operator.
	Uncertain bool `json:"uncertain"`
}

// State is how a call has ended before a retry.
type State string

// The states.
const (
	Succeeded  State = "success"
	Failed     State = "failed"
	NotStarted State = "not_started"
	NotEnded   State = "not_ended" // called by a worker that did not own the turn any more
)

// Outline returns what a retry would do. Effect returns the current effect of a tool, "" if that is not known;
// the stricter one of it and the one under which the call was made counts. Effect may be nil.
func (p *Past) Outline(effect func(tool string) events.Effect) *Outline {
	o := &Outline{Calls: []Call{}}
	p.outline(o, "", effect)
	return o
}

func (p *Past) outline(o *Outline, prefix string, effect func(tool string) events.Effect) {
	program := p.program(prefix)
	if program == nil {
		return
	}
	kept := program.Kept(p.state(program, prefix))
	for _, call := range program.Calls() {
		id := prefix + call.ID
		c := Call{Call: id, ToolName: call.Tool, State: NotStarted, Copied: slices.Contains(kept, call)}
		own, copied := p.calls[id], p.copies.Call(id)
		switch {
		case copied != nil:
			c.From, c.State, c.Code = copied.From, stateOf(copied.Success), copied.Code
		case own != nil && own.end != nil:
			c.From, c.State, c.Code, c.EffectState = own.end.ToolCallID, stateOf(own.end.Success), own.end.FailureCode(), own.end.EffectState
		case own != nil && own.called != nil:
			c.From, c.State = own.called.ToolCallID, NotEnded
		}
		if own != nil && own.called != nil {
			c.Effect = own.called.Effect
		}
		if !c.Copied && c.State != NotStarted {
			now := c.Effect
			if effect != nil {
				now = events.Effect.Stricter(now, effect(call.Tool))
			}
			c.Uncertain = uncertain(&c, now)
		}
		o.Calls = append(o.Calls, c)
		if !c.Copied {
			p.outline(o, id+"#", effect)
		}
	}
}

// program returns the program with the calls of a prefix: of the turn, or as the turn has copied it.
func (p *Past) program(prefix string) *flow.Program {
	if program := p.programs[prefix]; program != nil {
		return program
	}
	return p.copies.program(prefix)
}

// state is what is known of the calls of a program.
func (p *Past) state(program *flow.Program, prefix string) flow.State {
	state := flow.State{}
	for _, call := range program.Calls() {
		id := prefix + call.ID
		if copied := p.copies.Call(id); copied != nil {
			state[call.ID] = flow.EndedCall(copied.Success, string(copied.Code), copied.Seq)
		} else if own := p.calls[id]; own != nil {
			s := flow.CallState{Called: true}
			if own.end != nil {
				s = flow.EndedCall(own.end.Success, string(own.end.FailureCode()), own.seq)
			}
			state[call.ID] = s
		}
	}
	return state
}

func stateOf(success bool) State {
	if success {
		return Succeeded
	}
	return Failed
}

// uncertain reports whether the effect of a call may have happened although it has no success, and a second one could be harmful.
// A keyed tool counts as well: the retry is another turn, so its call has another idempotency key.
func uncertain(c *Call, effect events.Effect) bool {
	switch effect {
	case events.EffectIdempotent, events.EffectNone, events.EffectProgram:
		return false
	case events.EffectUnsafe, events.EffectReplay, events.EffectKeyed:
	}
	switch c.Code {
	case events.CodeInterrupted, events.CodeCancelled, events.CodeTimeout, events.CodeExpired, events.CodeTooLarge, events.CodeStateCorrupt:
		return true
	default:
		return c.State == NotEnded || c.EffectState != ""
	}
}

// Consent checks that rerun names each call that runs although its effect may have happened, and names only calls that run
// ([Outline.Known]). It may name calls that need no consent. The error has code bad_args and names the calls.
func (o *Outline) Consent(rerun []string) error {
	var missing []string
	for i := range o.Calls {
		if c := &o.Calls[i]; c.Uncertain && !slices.Contains(rerun, c.Call) {
			missing = append(missing, fmt.Sprintf("call %s of tool %s (%s, %s) %s", c.Call, c.ToolName, ended(c), effectName(c.Effect), c.happened()))
		}
	}
	if len(missing) > 0 {
		return refusal("the effect of " + strings.Join(missing, ", of ") + ": find out, and name the calls that are to run again (turnctl retry --rerun)")
	}
	return o.Known(rerun)
}

// happened states what is known of the effect of a call that needs consent.
func (c *Call) happened() string {
	if c.EffectState == events.EffectHappened {
		return "has happened, though its result was not used"
	}
	return "may or may not have happened"
}

// Known reports a call of rerun that the program does not have, or that does not run again: an error with code bad_args.
func (o *Outline) Known(rerun []string) error {
	for _, id := range rerun {
		i := slices.IndexFunc(o.Calls, func(c Call) bool { return c.Call == id })
		switch {
		case i < 0:
			return refusal(o.unknown(id))
		case o.Calls[i].Copied:
			return refusal(fmt.Sprintf("call %s has ended, and a retry keeps its result: it cannot run again", id))
		}
	}
	return nil
}

// unknown lists the calls of the program and suggests the calls of the tool whose name was given.
func (o *Outline) unknown(id string) string {
	if len(o.Calls) == 0 {
		return fmt.Sprintf("the program has no call %.80q to run again: it has no calls", id)
	}
	const most = 20
	var ids, of []string
	for i := range o.Calls {
		c := &o.Calls[i]
		ids = append(ids, c.Call)
		if c.ToolName == id && !c.Copied {
			of = append(of, c.Call)
		}
	}
	text := fmt.Sprintf("the program has no call %.80q to run again: its calls are ", id) + strings.Join(ids[:min(len(ids), most)], ", ")
	if more := len(ids) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(of) > 0 {
		text += fmt.Sprintf("; did you mean %s (tool %s)?", strings.Join(of, " or "), id)
	}
	return text
}

func ended(c *Call) string {
	if c.State == NotEnded {
		return "called, without an end"
	}
	return string(c.Code)
}

func effectName(e events.Effect) string {
	if e == "" {
		return string(events.EffectUnsafe)
	}
	return string(e)
}

// Uncertain returns the calls that need consent.
func (o *Outline) Uncertain() []string {
	ids := []string{}
	for i := range o.Calls {
		if o.Calls[i].Uncertain {
			ids = append(ids, o.Calls[i].Call)
		}
	}
	return ids
}

// Covers reports whether rerun names all calls that need consent.
func (o *Outline) Covers(rerun []string) bool {
	return !slices.ContainsFunc(o.Uncertain(), func(id string) bool { return !slices.Contains(rerun, id) })
}
