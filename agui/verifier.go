package agui

import (
	"fmt"
	"hash/maphash"
	"slices"
)

// Verifier checks the events of one run in the order in which a client receives them. Its rules come from the verifiers and schemas
// of the clients, and from the specification where clients do not check it yet: see the files verify_*.go. It is cheap enough to
// guard production streams. Its memory is bounded: up to 10,000 open texts, calls, steps and subagents, [MaxEvent] bytes of
// unfinished arguments, and about 20 bytes for each of up to 200,000 ids.
type Verifier struct {
	thread, run string
	peer        Peer

	count   int // of events so far
	started bool
	over    bool

	seed  maphash.Seed
	seen  map[uint64]owner    // entities that the client has, by hash
	open  map[entity]*pending // what has to be closed before the run ends; nil but for calls
	chunk Event               // the first one of what the last chunk was part of; nil if there is none
	held  int                 // bytes in open
	limit int                 // of seen
}

// entity is something that has an id.
type entity struct {
	kind kind
	id   string
	tag  string // of steps: the subagent, as names are unique for each
}

// owner is the hash of the subagent that an entity belongs to; 0 is the agent.
type owner uint64

const anyOwner = ^owner(0) // clients do not check it

// kind is what an id names. Ids of different kinds do not conflict.
type kind byte

const (
	aText      kind = iota + 1 // an open text message
	aReasoning                 // an open reasoning message
	aMessage                   // a message of any role, open or not
	aParent                    // a message that calls can be part of
	aSpan                      // of reasoning
	aThought                   // a span or a reasoning message, which share their ids and owners
	aCall
	aResult // of a call, by the id of the call
	aStep
	aSubagent
	anActivity // a message that deltas can change
)

func (k kind) String() string {
	return [...]string{"", "text message", "reasoning message", "message", "message of an assistant", "reasoning span", "reasoning", "tool call", "result", "step", "subagent", "activity"}[k]
}

// pending is what an open call has received.
type pending struct {
	first string // shared with the event
	more  []byte // all, if there was more than one piece
}

const (
	maxSeen = 200_000
	maxOpen = 10_000
	maxHeld = 10_000    // ids of an input, the newest: a verifier lives as long as its stream
	maxTime = 1<<53 - 1 // JavaScript's largest integer
)

// NewVerifier returns a verifier for the run of an input. The client has the messages of the input, so that they may not be
// sent again except in snapshots.
func NewVerifier(in *RunAgentInput) *Verifier {
	v := &Verifier{
		thread: in.ThreadID, run: in.RunID, peer: in.Peer(),
		seed: maphash.MakeSeed(), seen: map[uint64]owner{}, open: map[entity]*pending{},
	}
	v.limit = maxHeld
	for _, m := range slices.Backward(in.Messages) {
		if v.addMessage(m) != nil {
			break
		}
	}
	v.limit = maxSeen
	return v
}

// ViolationError is why an event may not be sent.
type ViolationError struct {
	Number int       // of the event in the stream; the first is 1
	Event  EventType // "" for the end of the stream
	Msg    string    // what is wrong, and the fix; it names ids
}

// Error implements error.
func (e *ViolationError) Error() string {
	if e.Event == "" {
		return "the stream of events ends: " + e.Msg
	}
	return fmt.Sprintf("event %d (%s): %s", e.Number, e.Event, e.Msg)
}

// Check returns a *[ViolationError] if the event may not be sent now. Such an event does not count: another can follow.
func (v *Verifier) Check(e Event) error {
	e = unshared(e)
	if err := v.check(e); err != nil {
		return &ViolationError{Number: v.count + 1, Event: e.Type(), Msg: err.Error()}
	}
	v.count++
	return nil
}

// End returns a *[ViolationError] if the stream may not end now: clients take a run without a last event for a success.
func (v *Verifier) End() error {
	if !v.over {
		return &ViolationError{Number: v.count, Msg: "the run has not ended: send RUN_FINISHED or RUN_ERROR"}
	}
	return nil
}

func (v *Verifier) check(e Event) error {
	if err := v.checkAny(e); err != nil {
		return err
	}
	if err := v.endChunk(e); err != nil {
		return err
	}
	switch e := e.(type) {
	case *RunStarted:
		return v.runStarted(e)
	case *RunFinished:
		return v.runFinished(e)
	case *RunError:
		v.over = true
	case *StepStarted:
		return v.stepStarted(e)
	case *StepFinished:
		return v.close(entity{aStep, e.StepName, e.SubagentRunID}, "")
	case *SubagentStarted:
		return v.subagentStarted(e)
	case *SubagentFinished:
		return v.close(entity{kind: aSubagent, id: e.SubagentRunID}, "")
	case *SubagentError:
		return v.close(entity{kind: aSubagent, id: e.SubagentRunID}, "")
	case *MessagesSnapshot:
		return v.snapshot(e)
	case *StateDelta:
		return checkPatch(e.Delta)
	case *ActivitySnapshot:
		return v.activitySnapshot(e)
	case *ActivityDelta:
		return v.activityDelta(e)
	case *Custom:
		return needed("name", e.Name)
	case *StateSnapshot, *Raw:
	default:
		return v.checkMessageEvent(e)
	}
	return nil
}

// checkMessageEvent is check for the events of texts, calls and reasoning.
func (v *Verifier) checkMessageEvent(e Event) error {
	switch e := e.(type) {
	case *TextMessageStart:
		return v.textStart(e)
	case *TextMessageContent:
		return v.within(entity{kind: aText, id: e.MessageID}, e.SubagentRunID)
	case *TextMessageEnd:
		return v.close(entity{kind: aText, id: e.MessageID}, e.SubagentRunID)
	case *TextMessageChunk:
		return v.textChunk(e)
	case *ToolCallStart:
		return v.callStart(e)
	case *ToolCallArgs:
		return v.callArgs(e.ToolCallID, e.Delta, e.SubagentRunID)
	case *ToolCallEnd:
		return v.callEnd(e.ToolCallID, e.SubagentRunID)
	case *ToolCallChunk:
		return v.callChunk(e)
	case *ToolCallResult:
		return v.result(e)
	case *ReasoningStart:
		return v.reasoningStart(entity{kind: aSpan, id: e.MessageID}, aSpan, e.SubagentRunID)
	case *ReasoningEnd:
		return v.close(entity{kind: aSpan, id: e.MessageID}, e.SubagentRunID)
	case *ReasoningMessageStart:
		return v.reasoningStart(entity{kind: aReasoning, id: e.MessageID}, aMessage, e.SubagentRunID)
	case *ReasoningMessageContent:
		return v.within(entity{kind: aReasoning, id: e.MessageID}, e.SubagentRunID)
	case *ReasoningMessageEnd:
		return v.close(entity{kind: aReasoning, id: e.MessageID}, e.SubagentRunID)
	case *ReasoningMessageChunk:
		return v.reasoningChunk(e)
	case *ReasoningEncryptedValue:
		return v.encryptedValue(e)
	default:
		return fmt.Errorf("%T is not an event of this package", e)
	}
}
