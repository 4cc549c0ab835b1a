package oneturntest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// steps is a history of a turn whose tool is a program. Steps are named by their ids in it.
type steps struct{ *asked }

func newSteps(t *testing.T, p *flow.Program) steps {
	t.Helper()
	h := steps{history(t)}
	h.claim()
	h.Journal[0].Meta.Effect = "program"
	h.program("", p)
	return h
}

// plan is a program of calls in a row.
func plan(ids ...string) *flow.Program {
	p := &flow.Program{Kind: flow.KindPlan}
	for _, id := range ids {
		p.Steps = append(p.Steps, flow.Step{ID: id, Calls: []flow.Call{{ID: id, Tool: "work"}}})
	}
	return p
}

// of returns the id of a call: of the turn for "".
func (h steps) id(step string) string {
	if step == "" {
		return "t1"
	}
	return events.StepID("t1", step)
}

func of(step string) subjects.Key { return key.WithCall(subjects.CallOf(step)) }

func (h steps) program(step string, p *flow.Program) {
	data, err := json.Marshal(p)
	require.NoError(h.t, err)
	h.record(of(step).Public("program"), "A", 1, "", h.event(events.KindPlanStarted, &events.PlanStarted{
		Kind: events.KindPlanStarted, ToolCallID: h.id(step), AppID: "app", ChatID: "chat", Turn: "t1", ProgramData: data,
	}))
}

// called stores the tool_call of a step, by a run.
func (h steps) called(step, nonce string, epoch int, effect string) {
	h.record(of(step).Public("tool_call"), nonce, epoch, "", h.event(events.KindToolCall, &events.ToolCall{
		ToolCallID: h.id(step), Program: h.id(""), Step: step, AppID: "app", ChatID: "chat", Turn: "t1",
	})).Meta.Effect = effect
}

// ended stores the response of a step; "" is a success.
func (h steps) ended(step, nonce string, epoch int, code events.Code) {
	r := &events.ToolResponse{ToolCallID: h.id(step), Status: "ok", Success: true, AppID: "app", ChatID: "chat", Turn: "t1"}
	if code != "" {
		r.Status, r.Success, r.Code = "error", false, code
	}
	h.record(of(step).Public("tool_response"), nonce, epoch, "", h.event(events.KindToolResponse, r))
}

// ran is a step that is called, entered, left and ended by one run.
func (h steps) ran(step, nonce string, epoch int, effect string) {
	h.called(step, nonce, epoch, effect)
	h.noteOf(step, "enter", epoch)
	h.noteOf(step, "exit", epoch)
	h.ended(step, nonce, epoch, "")
}

// noteOf adds a line of a step to the ledger.
func (h steps) noteOf(step, phase string, epoch int, name ...string) {
	h.note(phase, strings.Join(name, ""), epoch)
	last := &h.Ledger[len(h.Ledger)-1]
	last.Call, last.Key = h.id(step), "key of "+step
}

func (h steps) askOf(step, id string, nonce string) {
	e := h.call(id)
	e.ToolCallID = events.QuestionID(h.id(step), id)
	h.record(of(step).Public("ask", id), nonce, 1, "", h.event(events.KindToolCall, e))
}

func (h steps) answerOf(step, id, value string) {
	h.record(of(step).Private("answer", id), "answer-"+id, 1, string(idempotency.Answered), []byte(value))
	e := h.call(id)
	e.ToolCallID = events.QuestionID(h.id(step), id)
	h.record(of(step).Public("ack", id), "ack-"+id, 1, string(idempotency.Answered), h.event(events.KindToolCallAck, e.Ack(events.AckAccepted, "")))
}

// at returns a record of a step.
func (h steps) at(step, kind string) *idempotency.Record {
	h.t.Helper()
	i := slices.IndexFunc(h.Journal, func(r idempotency.Record) bool {
		return r.Key == of(step).Public(kind) || r.Key == of(step).Private(kind)
	})
	require.GreaterOrEqual(h.t, i, 0, "%s %s", step, kind)
	return &h.Journal[i]
}

// drop removes records by the beginnings of their keys.
func (h steps) drop(names ...string) {
	for _, name := range names {
		h.Journal = slices.DeleteFunc(h.Journal, func(r idempotency.Record) bool { return strings.HasPrefix(r.Key, name) })
		h.Copies = slices.DeleteFunc(h.Copies, func(c oneturntest.Copy) bool { return strings.HasPrefix(c.Key, name) })
	}
}

// threeSteps is a plan whose worker died in its second step, an idempotent one.
func threeSteps(t *testing.T) steps {
	t.Helper()
	h := newSteps(t, plan("0", "1", "2"))
	h.ran("0", "A", 1, "unsafe")
	h.called("1", "A", 1, "idempotent")
	h.noteOf("1", "enter", 1)
	h.park(1, "S", "sealed")
	h.takeover(2, "B", 1, 2)
	h.noteOf("1", "enter", 2)
	h.noteOf("1", "exit", 2)
	h.ended("1", "B", 2, "")
	h.ran("2", "B", 2, "replay") // its first run
	h.respond()
	h.Journal[len(h.Journal)-1].Meta.Nonce = "B"
	return h
}

// cutOff is a plan whose worker died in an unsafe step, which ends as interrupted and halts it.
func cutOff(t *testing.T) steps {
	t.Helper()
	h := newSteps(t, plan("0", "1"))
	h.called("0", "A", 1, "unsafe")
	h.noteOf("0", "enter", 1)
	h.park(1, "S", "sealed")
	h.takeover(2, "B", 1, 2)
	h.ended("0", "B", 2, events.CodeInterrupted)
	h.record(key.Public("tool_response"), "B", 2, "", h.event(events.KindToolResponse, &events.ToolResponse{
		ToolCallID: "t1", Status: "error", Code: events.CodeInterrupted, AppID: "app", ChatID: "chat", Turn: "t1",
	}))
	return h
}

// parkedGroup is a group of two steps that ask, a plan in its third call, and an agent that responds. It was parked and one
// question was answered.
func parkedGroup(t *testing.T) steps {
	t.Helper()
	h := newSteps(t, &flow.Program{Kind: flow.KindOrchestration, Steps: []flow.Step{
		{ID: "g", Group: true, Merge: flow.MergeCollect, Parallel: 2, Calls: []flow.Call{{ID: "g[0]"}, {ID: "g[1]"}}},
		{ID: "inner", Calls: []flow.Call{{ID: "inner", Tool: "run_plan"}}},
	}})
	for i, step := range []string{"g[0]", "g[1]"} {
		h.called(step, "A", 1, "replay")
		h.noteOf(step, "enter", 1)
		h.noteOf(step, "ask", 1, "1")
		h.askOf(step, "1", "ask"+string(rune('a'+i)))
	}
	h.park(1, "A", "parked", subjects.StepCall("g[0]")+".1", subjects.StepCall("g[1]")+".1")
	h.answerOf("g[0]", "1", `"yes"`)
	h.takeover(2, "B", 7, 1)
	h.continued("g[0]", "B", 2)
	h.park(2, "B", "parked", subjects.StepCall("g[1]")+".1")
	h.answerOf("g[1]", "1", `"no"`)
	h.takeover(3, "C", 8, 1)
	h.continued("g[1]", "C", 3)
	h.called("inner", "C", 3, "program")
	h.program("inner", plan("0"))
	h.ran("inner#0", "C", 3, "unsafe")
	h.ended("inner", "C", 3, "")
	h.record(key.Public("result"), "C", 3, "", h.event(events.KindPlanFinished, &events.PlanFinished{
		Kind: events.KindPlanFinished, ToolCallID: "t1", AppID: "app", ChatID: "chat", Turn: "t1",
	}))
	h.called("~respond", "C", 3, "none")
	h.ended("~respond", "C", 3, "")
	h.respond()
	h.Journal[len(h.Journal)-1].Meta.Nonce = "C"
	return h
}

// continued is a step that is entered again by its answer.
func (h steps) continued(step, nonce string, epoch int) {
	h.noteOf(step, "enter", epoch)
	h.noteOf(step, "ask", epoch, "1")
	h.record(of(step).Private("taken", "1"), nonce, epoch, "", nil)
	h.noteOf(step, "answered", epoch, "1")
	h.noteOf(step, "exit", epoch)
	h.ended(step, nonce, epoch, "")
}

func TestProgramsAreInOrder(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]steps{"three steps": threeSteps(t), "cut off": cutOff(t), "a group that was parked": parkedGroup(t)} {
		require.Empty(t, oneturntest.Check(h.Facts, map[string]bool{key.String(): true}), name)
	}
	h := parkedGroup(t)
	h.Answers = []oneturntest.SentAnswer{{
		Question: api.Question{App: "app", Chat: "chat", Turn: "t1", ToolCallID: "t1#g[0]/1"},
		Act:      oneturntest.Act{Value: "yes"}, Result: events.NewAnswerResult(events.AnswerAccepted, "t1#g[0]/1", ""),
	}}
	require.Empty(t, oneturntest.Check(h.Facts, map[string]bool{}), "no fault is needed for it")
}

// closedStep is a plan of an unsafe step that asks and runs out of time, which closes its question, of a step that runs a program
// whose approval runs out of time, and of a third one.
func closedStep(t *testing.T) steps {
	t.Helper()
	h := newSteps(t, &flow.Program{Kind: flow.KindOrchestration, Steps: []flow.Step{
		{ID: "0", Continue: true, Calls: []flow.Call{{ID: "0", Tool: "work"}}},
		{ID: "1", Continue: true, Calls: []flow.Call{{ID: "1", Tool: "vetted"}}},
		{ID: "2", Calls: []flow.Call{{ID: "2", Tool: "work"}}},
	}})
	h.called("0", "A", 1, "unsafe")
	h.noteOf("0", "enter", 1)
	h.noteOf("0", "ask", 1, "1")
	h.askOf("0", "1", "ask0")
	h.ended("0", "A", 1, events.CodeTimeout)
	h.closeOf("0", "1")
	h.called("1", "A", 1, "program")
	h.program("1", plan("0"))
	h.askOf("1#~approve", "1", "ask1")
	h.ended("1", "A", 1, events.CodeTimeout)
	h.closeOf("1#~approve", "1")
	h.ran("2", "A", 1, "unsafe")
	h.respond()
	return h
}

// closeOf cancels a question of a step.
func (h steps) closeOf(step, id string) {
	h.record(of(step).Private("answer", id), "answer-"+id, 1, string(idempotency.Cancelled), nil)
	e := h.call(id)
	e.ToolCallID = events.QuestionID(h.id(step), id)
	h.record(of(step).Public("ack", id), "ack-"+id, 1, string(idempotency.Cancelled), h.event(events.KindToolCallAck, e.Ack(events.AckCancelled, "")))
}

func TestQuestionIsCancelledByTheEndOfItsStep(t *testing.T) {
	t.Parallel()
	require.Empty(t, oneturntest.Check(closedStep(t).Facts, map[string]bool{}))
}

func TestOwnerThatHadLostItsTurnMayCallAStepAfterTheResponse(t *testing.T) {
	t.Parallel()
	h := cutOff(t)
	h.called("1", "A", 1, "idempotent")
	h.noteOf("1", "enter", 1)
	h.noteOf("1", "exit", 1)
	h.ended("1", "A", 1, "")
	// It did not know that the program had halted: it was about to call the next step when it was paused.
	h.at("0", "tool_response").Data = h.event(events.KindToolResponse, &events.ToolResponse{
		ToolCallID: "t1#0", Status: "ok", Success: true, AppID: "app", ChatID: "chat", Turn: "t1",
	})
	h.Copies = nil
	h.noteOf("0", "exit", 1)
	require.Empty(t, oneturntest.Check(h.Facts, map[string]bool{key.String(): true}))
}

func TestToolThatIsTriedAgainByItsRunIsNotEnteredAgain(t *testing.T) {
	t.Parallel()
	h := threeSteps(t)
	again := h.Ledger[0]
	again.Attempt = 2
	h.Ledger = slices.Insert(h.Ledger, 1, again)
	require.Empty(t, oneturntest.Check(h.Facts, map[string]bool{key.String(): true}))
}

func TestParkedProgramMayBeAtRest(t *testing.T) {
	t.Parallel()
	h := parkedGroup(t)
	h.Ledger = h.Ledger[:4]
	at := slices.IndexFunc(h.Journal, func(r idempotency.Record) bool { return strings.Contains(r.Key, ".answer.") })
	h.Journal, h.Copies, h.Accepted[0].MayWait = h.Journal[:at], nil, true
	require.Empty(t, oneturntest.Check(h.Facts, map[string]bool{}))
}
