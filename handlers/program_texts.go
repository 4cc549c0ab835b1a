package handlers

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/program"
)

// The texts of the responses of programs and of steps that were stopped.

// endedText is the text of a program that was ended from outside: by a cancel, its time limit, or a person who has not approved it.
func (p *programRun) endedText(why *events.Error) string {
	p.mu.Lock()
	names := slices.Clone(p.stoppedTools)
	p.mu.Unlock()
	slices.Sort(names)
	names = slices.Compact(names) // a tool may have run several times
	tools, text := strings.Join(names, ", "), why.Msg
	switch isCancel := why.Code == events.CodeCancelled && why.Op != opApprove; {
	case isCancel && tools == "":
		text = "The turn was cancelled while none of its calls ran."
	case isCancel:
		text = "The turn was cancelled while " + ranAndMayHave(names, tools)
	case why.Code == events.CodeTimeout && tools == "":
		text = capital(why.Msg) + "."
	case why.Code == events.CodeTimeout:
		text = capital(why.Msg) + " while " + ranAndMayHave(names, tools)
	default:
		return text
	}
	return events.Clip(text + p.reasonOf(why))
}

// Texts of a turn that is cancelled while none of its calls runs.
const (
	cancelledBeforeCalls = "The turn was cancelled before a call of its program started: none ran."
	cancelledAfterCalls  = "The turn was cancelled after the calls of its program had ended, while the answer for the user was written."
)

// cancelledText is the text of a turn whose program has no outcome because it was cancelled.
func (p *programRun) cancelledText() string {
	if p.runner == nil {
		return cancelledBeforeCalls
	}
	return cancelledAfterCalls
}

// nothingCalled reports whether a turn of a program waited for a person before its first call: for its approval, or an agent that plans.
func nothingCalled(t *idempotency.Turn) bool {
	return ofProgram(t) && !slices.ContainsFunc(t.Steps(), func(c *idempotency.Call) bool { return isStep(c.Key) && c.Called != nil })
}

// stoppedText is the text of a step whose tool was stopped because of why, and notes the tool if the whole program is.
func (p *programRun) stoppedText(s *step, why *events.Error, entered bool) string {
	tool := s.Binding.Tool
	cause := capital(why.Msg)
	switch {
	case program.IsRaceOver(why):
	case entered:
		p.noteStopped(tool)
	}
	text := fmt.Sprintf("%s while tool %s ran: its effect may or may not have happened.", cause, tool)
	switch {
	case !entered && p.d.Turn.CallOf(s.Key) == nil:
		text = fmt.Sprintf("%s before tool %s was entered: it did not run.", cause, tool)
	case !entered:
		text = fmt.Sprintf("%s before this worker entered tool %s.", cause, tool)
	}
	return events.Clip(text + p.reasonOf(why))
}

// reasonOf is the end of a text with the reason of a cancel.
func (p *programRun) reasonOf(why *events.Error) string {
	if why.Code != events.CodeCancelled || program.IsRaceOver(why) {
		return ""
	}
	if reason := p.cancelReason(); reason != "" {
		return " Reason: " + reason
	}
	return ""
}

// reasonReader returns a function that reads the reason of a cancel once. Steps that need it at the same time read it each: none waits
// for the read of another one.
func (h *Handlers) reasonReader(t *turn, known *idempotency.Turn) func() string {
	var read atomic.Pointer[string]
	return func() string {
		if reason := read.Load(); reason != nil {
			return *reason
		}
		reason := h.cancelReason(t, known)
		read.Store(&reason)
		return reason
	}
}

// noteStopped notes tools that ran when the program was ended from outside.
func (p *programRun) noteStopped(tools ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stoppedTools = append(p.stoppedTools, tools...)
}

// ranAndMayHave is the end of a sentence about tools that were stopped.
func ranAndMayHave(names []string, tools string) string {
	if len(names) > 1 {
		return "tools " + tools + " ran: their effects may or may not have happened."
	}
	return "tool " + tools + " ran: its effect may or may not have happened."
}

// asSentence ends a text with a full stop, unless it ends as a sentence.
func asSentence(text string) string {
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// capital begins a text with a capital.
func capital(text string) string {
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// counted writes how the calls of a program have ended.
func counted(n flow.Counts) string {
	if n.Failed+n.Stopped == 0 {
		return plural.Of(n.Succeeded, "call") + ", all successful"
	}
	text := fmt.Sprintf("%d successful", n.Succeeded)
	if n.Failed > 0 {
		text += fmt.Sprintf(", %d failed", n.Failed)
	}
	if n.Stopped > 0 {
		text += fmt.Sprintf(", %d stopped because another was first", n.Stopped)
	}
	return text
}
