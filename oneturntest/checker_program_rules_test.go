package oneturntest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

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
