package agui

import "slices"

// What clients from before 1.0 reject, and what they receive in its place. A client that rejects one event ends the run.
//
//	RUN_FINISHED cancelled                    RUN_ERROR with the code "abort", as they report their own
//	RUN_FINISHED pendingToolCallIds           nothing: they find the calls without results themselves
//	interrupts: expiresAt                     nothing: a thread with an expired one can never run again
//	results and tool messages with parts      their texts
//	SUBAGENT_*                                nothing: clients before 0.0.59 reject them, and do not send their version
//	messages with media in a file source      the message without these parts

// CodeAbort is the code of a RUN_ERROR that means that the run was stopped.
const CodeAbort = "abort"

// downgrades returns the event for clients from before 1.0, or nil. Events without an entry are the same for all.
//
//nolint:gochecknoglobals // a read-only table
var downgrades = map[EventType]func(Event) Event{
	TypeRunStarted: func(e Event) Event {
		started, ok := e.(*RunStarted)
		if !ok || started.Input == nil || !slices.ContainsFunc(started.Input.Messages, isModern) {
			return e
		}
		copied, input := *started, *started.Input
		input.Messages = downgradeMessages(input.Messages)
		copied.Input = &input
		return &copied
	},
	TypeRunFinished: func(e Event) Event {
		finished, ok := e.(*RunFinished)
		if !ok {
			return e
		}
		return downgradeFinished(finished)
	},
	TypeToolCallResult: func(e Event) Event {
		result, ok := e.(*ToolCallResult)
		if !ok || result.Content.Parts == nil {
			return e
		}
		copied := *result
		copied.Content = Text(result.Content.String())
		return &copied
	},
	TypeMessagesSnapshot: func(e Event) Event {
		snapshot, ok := e.(*MessagesSnapshot)
		if !ok || !slices.ContainsFunc(snapshot.Messages, isModern) {
			return e
		}
		copied := *snapshot
		copied.Messages = downgradeMessages(snapshot.Messages)
		return &copied
	},
	TypeSubagentStarted:  func(Event) Event { return nil },
	TypeSubagentFinished: func(Event) Event { return nil },
	TypeSubagentError:    func(Event) Event { return nil },
}

// Downgrade returns the event as the client can read it: e itself, a changed copy, or nil for an event that is not for it.
func Downgrade(e Event, peer Peer) Event {
	change := downgrades[e.Type()]
	if change == nil || !peer.Before1() {
		return e
	}
	if inner := unshared(e); inner != e {
		if changed := change(inner); changed != inner {
			return changed
		}
		return e
	}
	return change(e)
}

func downgradeFinished(e *RunFinished) Event {
	switch {
	case e.Outcome == nil:
		return e
	case e.Outcome.Type == OutcomeCancelled:
		return &RunError{Message: "the run was stopped", Code: CodeAbort, Usage: e.Usage, Base: e.Base}
	case len(e.Outcome.PendingToolCallIDs) == 0 && !slices.ContainsFunc(e.Outcome.Interrupts, func(i Interrupt) bool { return i.ExpiresAt != "" }):
		return e
	}
	copied := *e
	copied.Outcome = &Outcome{Type: e.Outcome.Type, Interrupts: slices.Clone(e.Outcome.Interrupts)}
	for i := range copied.Outcome.Interrupts {
		copied.Outcome.Interrupts[i].ExpiresAt = ""
	}
	return &copied
}

// isModern reports whether clients from before 1.0 reject a message.
func isModern(m Message) bool {
	return m.Content.Parts != nil && (m.Role == RoleTool || slices.ContainsFunc(m.Content.Parts, isFile))
}

func isFile(p ContentPart) bool { return p.Source != nil && p.Source.Type == SourceFile }

// downgradeMessages returns a copy.
func downgradeMessages(messages []Message) []Message {
	copied := slices.Clone(messages)
	for i, m := range copied {
		switch {
		case !isModern(m):
		case m.Role == RoleTool:
			copied[i].Content = Text(m.Content.String())
		default:
			copied[i].Content.Parts = slices.DeleteFunc(slices.Clone(m.Content.Parts), isFile) // which works in place
		}
	}
	return copied
}
