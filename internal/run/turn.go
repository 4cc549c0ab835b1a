package run

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/serverclock"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// Turn is the part of a turn that a [Run] of its tool reads and updates. The handler of its message owns it.
type Turn struct {
	*events.StructuredOutputReady

	Message Message // the lease of the turn: the message that started, resumed or took it over

	Key    subjects.Key
	Name   string // Key in its written form
	CallID string // tool_call_id of the call

	// Of a step of a program: the tool_call_id of the turn, its id in the program (see events.StepID), and how many programs it is in.
	Program, Step string
	Depth         int

	Binding *bindings.Binding // nil if the turn was rejected before its binding was found
	Tool    tools.Invoker
	Effect  bindings.Effect // of the tool: as the binding specifies, or as the tool itself reports
	Version string          // of what the tool calls, "" if the tool reports none

	Vars  map[string]any    // context variables as an earlier run of the tool read them, nil if none did
	Base  map[string]string // digests of the snapshot of the event at that time, see the Base of a delta
	Asked bool              // a run of the tool has asked a question

	Secret atomic.Bool // the journal contains, or may come to contain, secrets of the turn
}

// Message is the part of a message that a run uses while the message is the lease of its turn.
type Message struct {
	// Held ends when the delivery is not held any longer: another worker may have the message then.
	Held    context.Context //nolint:containedctx // the life of the message, not of a call
	Slot    inbound.Slot    // nil if the message does not use one
	Subject string
	Arrived time.Time           // when the stream took the message last, by the clock of the server
	Clock   serverclock.Reading // the clock of the server when the message was received
}

// Attrs returns the log attributes of a turn whose binding was found, followed by args.
func (t *Turn) Attrs(args ...any) []any {
	return append([]any{"workflow", t.Workflow, "tool", t.Binding.Tool, "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID)}, args...)
}

// NoteSecrets sets Secret if the journal held secrets of the turn when it made a decision.
func (t *Turn) NoteSecrets(d idempotency.Decision) {
	if d.Turn != nil && d.Turn.Secret() {
		t.Secret.Store(true)
	}
}

// Now returns the time by the clock of the server; process is the time by the clock of the process.
func (t *Turn) Now(process time.Time) time.Time { return t.Message.Clock.Now(process) }

// Hit is a point at which tests may stop the worker. Without their build tag it compiles to nothing.
func (t *Turn) Hit(point string) {
	if failpoint.Enabled {
		effect := string(t.Effect)
		if t.Binding != nil && effect == "" {
			effect = string(t.Binding.Effect)
		}
		failpoint.Hit(point, effect, t.Key.String())
	}
}

// answerSubject is the subject of answers to the questions of the turn; it leads to the pool that runs the turn.
func (t *Turn) answerSubject(space subjects.Space) string {
	return space.In(poolOf(space, t.Message.Subject), events.KindToolCallResponse, t.App, t.Workflow, t.Chat)
}

// poolOf returns the pool of an inbound subject, the default pool for any other subject.
func poolOf(space subjects.Space, subject string) string {
	if in, ok := space.ParseIn(subject); ok {
		return in.Pool
	}
	return subjects.DefaultPool
}

// interactionEvent returns the event of a question or surface of the turn, without what it shows.
func (t *Turn) interactionEvent(id string) *events.ToolCall {
	full := events.QuestionID(t.CallID, id)
	return &events.ToolCall{
		ID: full, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolCallID: full, CallID: full, Corr: full, WorkflowName: t.Workflow, UserID: t.UserID,
		Program: t.Program, Step: t.Step, Depth: t.Depth,
	}
}

// BaseOf returns the Base of a delta of the turn that changes the variables names.
func (t *Turn) BaseOf(names []string) map[string]string {
	if t.ContextVariables == nil && t.Base == nil {
		return nil
	}
	base := make(map[string]string, len(names))
	for _, name := range names {
		if t.Base != nil {
			base[name] = t.Base[name]
		} else {
			base[name] = variables.Digest(t.ContextVariables[name])
		}
	}
	return base
}

// digests returns the digests of the whole snapshot of the event, nil without a snapshot.
func (t *Turn) digests() map[string]string {
	if t.Base != nil || t.ContextVariables == nil {
		return t.Base
	}
	base := make(map[string]string, len(t.ContextVariables))
	for name, value := range t.ContextVariables {
		base[name] = variables.Digest(value)
	}
	return base
}
