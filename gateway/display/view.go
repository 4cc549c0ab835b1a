package display

import (
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/agui"
)

// Change is what an event has changed, see [View.Render].
type Change struct {
	kind  changeKind
	call  *call
	turn  *turn
	plan  *plan
	step  int
	name  string
	event *Event // that the change shows; nil if the change follows from another one
}

type changeKind int

const (
	messageAdded changeKind = iota
	callAdded
	callEnded
	callDismissed
	turnStarted
	phaseChanged
	openChanged
	planStarted
	stepChanged
	variableSet
	speakerChanged
	progressed
	outputStored
)

// progressType is the type of the activity that shows the progress of a call.
const progressType = "oneturn.tool_progress"

// View is a chat as one stream displays it: what its client has, and what was sent to it. The zero value is the view of a client
// without tools and messages.
type View struct {
	// User is the user of the client. Questions to other users are displayed, and not asked.
	User string
	// Tools are the names of the tools that the client offers: a question whose component is one of them is answered by the
	// client's tool message.
	Tools map[string]bool
	// Answers are the tool messages of the client's input, by the call that they answer. Its own message stands for the
	// result of the call.
	Answers map[string]agui.Message
	// Known are the ids of user messages that the client has, and that are stored in the journal or on their way to it.
	Known map[string]bool

	stated     bool // the client has the state
	steps      []string
	activities map[string]bool
}

// Render returns a change as events for the client.
func (v *View) Render(c *Chat, changes []Change) []agui.Event {
	var out []agui.Event
	var patch agui.Patch //nolint:prealloc // most changes do not change the state
	for i := range changes {
		out = append(out, v.render(&changes[i])...)
		patch = append(patch, c.patch(&changes[i])...)
	}
	switch {
	case len(patch) == 0:
	case v.stated:
		out = append(out, &agui.StateDelta{Delta: patch})
	default: // a delta needs something that it applies to
		v.stated = true
		out = append(out, &agui.StateSnapshot{Snapshot: c.State()})
	}
	return out
}

func (v *View) render(change *Change) []agui.Event {
	switch change.kind {
	case messageAdded:
		m := change.event.text.message
		if m.user && v.Known[m.id] {
			return nil
		}
		return change.event.once(func() []agui.Event { return textEvents(m.asText()) })
	case callAdded:
		return v.called(change.call, change.event)
	case callEnded:
		return v.ended(change.call, change.event)
	case callDismissed:
		return []agui.Event{&agui.Custom{Name: "oneturn.tool_call_dismiss", Value: map[string]any{"tool_call_id": change.call.id}}}
	case turnStarted:
		return v.startStep(agui.StepName(change.turn.id))
	case phaseChanged:
		if change.turn.phase == Done || change.turn.phase == Failed {
			return v.finishStep(agui.StepName(change.turn.id))
		}
	case planStarted:
		return v.activity(change.plan.activity(), change.plan.snapshot())
	case stepChanged:
		return v.stepState(change.plan, change.step)
	case progressed:
		return v.progress(change.event)
	case outputStored:
		return change.event.once(func() []agui.Event { return []agui.Event{output(&change.event.event)} })
	case openChanged, variableSet, speakerChanged:
	}
	return nil
}

// called is a call in one burst, so that it is never half open.
func (v *View) called(c *call, e *Event) []agui.Event {
	if c.question != nil && v.Mode(c) == ByComposer {
		return textEvents(c.prompt())
	}
	if c.args != e.call.args { // the chat had no room for them
		return callEvents(c)
	}
	return e.once(func() []agui.Event { return callEvents(e.call) })
}

func callEvents(c *call) []agui.Event {
	start := &agui.ToolCallStart{ToolCallID: c.id, ToolCallName: c.name}
	start.Metadata = map[string]any{"_ui": c.ui}
	return []agui.Event{start, &agui.ToolCallArgs{ToolCallID: c.id, Delta: c.args}, &agui.ToolCallEnd{ToolCallID: c.id}}
}

// ended is the result of a call. The client has the result of a call that it has answered itself, and a prompt has none.
func (v *View) ended(c *call, e *Event) []agui.Event {
	var out []agui.Event
	if _, own := v.Answers[c.id]; !own && (c.question == nil || v.Mode(c) != ByComposer) {
		if e != nil {
			out = append(out, e.once(func() []agui.Event { return []agui.Event{resultEvent(c.id, e.result, e.failed)} })...)
		} else {
			out = append(out, resultEvent(c.id, c.result, c.failed))
		}
	}
	if id := agui.ActivityID(c.id); v.activities[id] {
		phase := Done
		if c.failed {
			phase = Failed
		}
		delete(v.activities, id)
		out = append(out, &agui.ActivityDelta{MessageID: id, ActivityType: progressType, Patch: agui.Patch{agui.Replace("/phase", phase)}})
	}
	return out
}

func resultEvent(call, content string, failed bool) agui.Event {
	result := &agui.ToolCallResult{MessageID: agui.ResultID(call), ToolCallID: call, Content: agui.Text(content)}
	if failed {
		result.Metadata = map[string]any{"success": false}
	}
	return result
}

// progress is the progress of a call, question or surface.
func (v *View) progress(e *Event) []agui.Event {
	id := agui.ActivityID(e.ToolCallID)
	if !v.activities[id] {
		return v.activity(id, &agui.ActivitySnapshot{MessageID: id, ActivityType: progressType, Content: map[string]any{
			"tool_call_id": e.ToolCallID, "phase": Running, "progress": e.ProgressPercent, "message": e.StatusMessage, "corr": e.Corr,
		}})
	}
	return e.once(func() []agui.Event {
		return []agui.Event{&agui.ActivityDelta{MessageID: id, ActivityType: progressType, Patch: agui.Patch{
			agui.Add("/progress", e.ProgressPercent), agui.Add("/message", e.StatusMessage), agui.Add("/corr", e.Corr),
		}}}
	})
}

// activity notes that the client has an activity.
func (v *View) activity(id string, snapshot agui.Event) []agui.Event {
	if v.activities == nil {
		v.activities = map[string]bool{}
	}
	v.activities[id] = true
	return []agui.Event{snapshot}
}

func (v *View) stepState(p *plan, step int) []agui.Event {
	if !v.activities[p.activity()] {
		return v.activity(p.activity(), p.snapshot())
	}
	out := []agui.Event{&agui.ActivityDelta{MessageID: p.activity(), ActivityType: planType, Patch: agui.Patch{
		agui.Replace(agui.Pointer("steps", strconv.Itoa(step), "state"), p.steps[step].State),
	}}}
	name := "step:" + p.id + "#" + p.steps[step].Call
	if p.steps[step].State == "running" {
		return append(out, v.startStep(name)...)
	}
	return append(out, v.finishStep(name)...)
}

func (v *View) startStep(name string) []agui.Event {
	if slices.Contains(v.steps, name) {
		return nil
	}
	v.steps = append(v.steps, name)
	return []agui.Event{&agui.StepStarted{StepName: name}}
}

// finishStep ends a step of this stream. The client of another stream may not have seen its start.
func (v *View) finishStep(name string) []agui.Event {
	at := slices.Index(v.steps, name)
	if at < 0 {
		return nil
	}
	v.steps = slices.Delete(v.steps, at, at+1)
	return []agui.Event{&agui.StepFinished{StepName: name}}
}

// Finish ends the steps that are open, which has to be before the end of a run.
func (v *View) Finish() []agui.Event {
	out := make([]agui.Event, 0, len(v.steps))
	for _, name := range v.steps {
		out = append(out, &agui.StepFinished{StepName: name})
	}
	v.steps = nil
	return out
}

// textEvents is a text in one burst.
func textEvents(m agui.Message) []agui.Event {
	events := []agui.Event{&agui.TextMessageStart{MessageID: m.ID, Role: m.Role, Name: m.Name}}
	if text := m.Content.String(); text != "" {
		events = append(events, &agui.TextMessageContent{MessageID: m.ID, Delta: text})
	}
	return append(events, &agui.TextMessageEnd{MessageID: m.ID})
}

// output is the output of an agent that calls no tool.
func output(e *event) agui.Event {
	return &agui.Custom{Name: "oneturn.structured_output", Value: map[string]any{
		"message_id": e.MessageID, "agent": e.Agent, "success": e.Success, "payload": e.Payload,
	}}
}
