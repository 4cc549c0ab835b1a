package oneturntest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestEveryRuleOfProgramsIsSeenBroken: each line breaks one of them.
func TestEveryRuleOfProgramsIsSeenBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want   string // the beginning of a violation, with the step
		good   func(t *testing.T) steps
		damage func(h steps)
	}{
		"unsafe entered twice": {"I2 0: effect unsafe, entered 2 times", threeSteps, func(h steps) { h.noteOf("0", "enter", 1) }},
		"unsafe entered by the next owner": {"I2 0: effect unsafe, called by epoch 1 and entered by epoch 2", cutOff, func(h steps) {
			h.Ledger = nil
			h.noteOf("0", "enter", 2)
		}},
		"entered by an epoch after its end":  {"I2 0: entered by epoch 2, which began after the step had ended", threeSteps, func(h steps) { h.noteOf("0", "enter", 2) }},
		"entered by its owner after its end": {"I2 1: entered by epoch 2 after it had stored the response", threeSteps, func(h steps) { h.noteOf("1", "enter", 2) }},
		"entered before its call":            {"I2 1: entered by epoch 1 before its call was stored", threeSteps, func(h steps) { h.Ledger[2].UnixNS = 1 }},
		"entered, not called": {"I2 1: entered, but not called", threeSteps, func(h steps) {
			h.drop(of("1").Public("tool_call"), of("1").Public("tool_response"))
		}},
		"entries without a step": {"I2 : the ledger has 1 entries without a step", threeSteps, func(h steps) { h.Ledger[0].Call = "" }},
		"an ended step that never returned": {"I2 0: ok, but its tool never returned", threeSteps, func(h steps) {
			h.Ledger = slices.Delete(h.Ledger, 1, 2)
		}},
		"the key of another step": {"I2 1: entered with idempotency key", threeSteps, func(h steps) { h.Ledger[2].Key = h.Ledger[0].Key }},
		"another token":           {"I6 1: epoch 2 entered the tool with fencing token", threeSteps, func(h steps) { h.Ledger[3].Token = h.at("1", "tool_call").Seq }},
		"no response":             {"I1 0: called, and without a response when the turn ended", cutOff, func(h steps) { h.drop(of("0").Public("tool_response")) }},
		"its response after the turn's": {"I1 0: called, and without a response when the turn ended", cutOff, func(h steps) {
			h.at("0", "tool_response").Seq = 99
		}},
		"called by the owner that ended the turn": {"I1 1: called, and without a response when the turn ended", cutOff, func(h steps) {
			h.called("1", "B", 2, "idempotent")
		}},
		"two responses": {"I1 0: a second tool_response", threeSteps, func(h steps) {
			h.record(of("0").Public("tool_response", "n"), "A", 1, "", h.at("0", "tool_response").Data)
		}},
		"a response without a call":    {"I4 0: a response without a call", threeSteps, func(h steps) { h.drop(of("0").Public("tool_call")) }},
		"the response before the call": {"I4 0: the response (4) is stored before the call", threeSteps, func(h steps) { h.at("0", "tool_call").Seq = 5 }},
		"answered as another step":     {"I4 0: call t1#0 is answered as t1#1", threeSteps, func(h steps) { h.at("0", "tool_response").Data = h.at("1", "tool_response").Data }},
		"the id of another step":       {"I8 0: record", threeSteps, func(h steps) { h.at("0", "tool_response").Data = h.at("1", "tool_response").Data }},
		"called before the program":    {"I4 0: called before the program was stored", threeSteps, func(h steps) { h.at("", "program").Seq = 9 }},
		"not in the program":           {"I4 3: called, but the program has no call \"3\"", threeSteps, func(h steps) { h.ran("3", "B", 2, "none") }},
		"of no program":                {"I4 0#1: call t1#0#1 names step \"0#1\"", threeSteps, func(h steps) { h.ran("0#1", "B", 2, "none") }},
		"called before the one before": {"I4 1: called before the steps before it were over", threeSteps, func(h steps) { h.at("0", "tool_response").Seq = h.at("1", "tool_call").Seq + 1 }},
		"called after one that halted": {"I4 1: called before the steps before it were over", threeSteps, func(h steps) {
			h.at("0", "tool_response").Data = h.event(events.KindToolResponse, &events.ToolResponse{ToolCallID: "t1#0", Status: "error", Code: "timeout", AppID: "app", ChatID: "chat", Turn: "t1"})
		}},
		"called before its group is over": {"I4 inner: called before the steps before it were over", parkedGroup, func(h steps) { h.at("g[1]", "tool_response").Seq = h.at("inner", "tool_call").Seq + 1 }},
		"called, though it was rejected": {"I2 0: called, but the program of the turn was rejected", threeSteps, func(h steps) {
			h.Journal[0].Data = h.event(events.KindToolCall, &events.ToolCall{ToolCallID: "t1", AppID: "app", ChatID: "chat", Turn: "t1", Rejected: true})
		}},
		"called after the cancel": {"I2 1: called by epoch 2, which began after the cancel", threeSteps, func(h steps) {
			h.Journal[1].Meta.Epoch = 1
			h.record(key.Public("cancel"), "c", 1, "", nil).Seq = 6
			h.at("1", "tool_call").Meta.Epoch = 2
		}},
		"interrupted without a fault": {"I7 0: interrupted without a fault", cutOff, func(h steps) { h.noteOf("0", "exit", 1) }},
		"parked while an unsafe step asks": {"I6 g[0]: epoch 1 is parked, though the tool of the step is unsafe", parkedGroup, func(h steps) {
			h.at("g[0]", "tool_call").Meta.Effect = "unsafe"
		}},
		"a waiting step is entered": {"I2 g[1]: entered by epoch 2, though the step was parked", parkedGroup, func(h steps) {
			h.Ledger = append(h.Ledger, oneturntest.LedgerEntry{
				Phase: "enter", App: "app", Chat: "chat", Turn: "t1", Call: "t1#g[1]", Key: "key of g[1]", Epoch: 2, Token: h.find("takeover", "2").Seq,
				UnixNS: h.find("takeover", "2").Time.UnixNano() + 1,
			})
		}},
		"replayed after its last answer": {"I2 g[0]: effect replay, and 2 of its runs", parkedGroup, func(h steps) { h.noteOf("g[0]", "exit", 1) }},
		"a question of another step": {"I13 g[0]: question 1 has id", parkedGroup, func(h steps) {
			e := h.call("1")
			e.ToolCallID = "t1#g[1]/1"
			h.atID("g[0]", "ask", "1").Data = h.event(events.KindToolCall, e)
		}},
		"cancelled before its step has ended": {"I13 0: question 1 was cancelled without a cancel of the turn or the end of its step", closedStep, func(h steps) {
			h.at("0", "tool_response").Seq = h.atID("0", "ack", "1").Seq
		}},
		"approval cancelled before its step has ended": {"I13 1#~approve: question 1 was cancelled without a cancel", closedStep, func(h steps) {
			h.at("1", "tool_response").Seq = h.atID("1#~approve", "ack", "1").Seq
		}},
		"cancelled while its step runs": {"I13 0: question 1 was cancelled without a cancel", closedStep, func(h steps) {
			h.drop(of("0").Public("tool_response"))
		}},
		"cancelled and passed to the tool": {"I13 0: question 1 was cancelled without a cancel of the turn or the end of its step, or passed", closedStep, func(h steps) {
			h.record(of("0").Private("taken", "1"), "A", 1, "", nil)
		}},
		"not closed with its step": {"I13 0: question 1 is cancelled and was not closed", closedStep, func(h steps) {
			h.drop(of("0").Public("ack", "1"))
		}},
		"lost wake-up of a step": {"I1 : parked, though question", parkedGroup, func(h steps) {
			at := slices.IndexFunc(h.Journal, func(r idempotency.Record) bool { return r.Key == key.Private("takeover", "2") })
			h.Journal, h.Accepted[0].MayWait = h.Journal[:at], true
		}},
		"an answer to another step": {"I13 g[0]: an answer to question 1 was reported", parkedGroup, func(h steps) {
			h.Answers = []oneturntest.SentAnswer{{
				Question: api.Question{App: "app", Chat: "chat", Turn: "t1", ToolCallID: "t1#g[0]/1"},
				Act:      oneturntest.Act{Value: "no"}, Result: events.NewAnswerResult(events.AnswerAccepted, "t1#g[0]/1", ""),
			}}
		}},
		"responds before the result": {"I4 ~respond: called before the result of the program", parkedGroup, func(h steps) { h.at("", "result").Seq = 99 }},
		"result before a step's end": {"I4 inner: the result of the program is stored, and the step", parkedGroup, func(h steps) {
			h.at("inner", "tool_response").Seq, h.at("", "result").Seq = h.at("", "result").Seq, h.at("inner", "tool_response").Seq
		}},
		"unsafe step inside a step entered twice": {"I2 inner#0: effect unsafe, entered 2 times", parkedGroup, func(h steps) { h.noteOf("inner#0", "enter", 3) }},
		"ended late": {"I12 : ended", threeSteps, func(h steps) { h.Accepted[0].At, h.Within = time.Unix(0, 1), time.Second }},
	} {
		h := c.good(t)
		c.damage(h)
		var found []string
		for _, v := range oneturntest.Check(h.Facts, map[string]bool{}) {
			k, _ := subjects.ParseKey("e." + v.Turn + ".tool_call")
			step, ok := subjects.StepOfCall(k.Call)
			if !ok && k.Call != subjects.SingleCall && k.Call != "" {
				step = "~" + k.Call
			}
			found = append(found, v.Invariant+" "+step+": "+v.Text)
		}
		require.True(t, slices.ContainsFunc(found, func(text string) bool { return strings.HasPrefix(text, c.want) }),
			"%s: want %s, found %v", name, c.want, found)
	}
}

// atID returns a public record of a step that has an id.
func (h steps) atID(step, kind, id string) *idempotency.Record {
	h.t.Helper()
	i := slices.IndexFunc(h.Journal, func(r idempotency.Record) bool { return r.Key == of(step).Public(kind, id) })
	require.GreaterOrEqual(h.t, i, 0)
	return &h.Journal[i]
}
