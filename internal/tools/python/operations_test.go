package python_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
)

func TestMozaiksToolsAskShowAndReportProgress(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
from mozaiksai.core.workflow.outputs.ui_tools import use_ui_tool, emit_ui_surface, UIToolTimeoutError
from core.workflow.ui_tools import use_ui_tool as same, emit_tool_progress_event
async def approve(chat_id):
    assert same is use_ui_tool
    await emit_tool_progress_event("approve", 150, "starting", chat_id=chat_id, correlation_id="x")
    answer = await use_ui_tool("Approval", {"title": "Deploy?", "maskInput": True}, chat_id=chat_id, workflow_name="wf",
                               display="artifact", timeout=90, agent_name="ignored")
    again = await use_ui_tool("Approval", {"title": "Sure?"}, chat_id=chat_id, workflow_name="WF", timeout=-1)
    shown = await emit_ui_surface("Plan", {"a": 1}, chat_id=chat_id, workflow_name="WF", display="view")
    return [answer, again, shown]
`)
	d := newHost().answer("1", `{"approved":true,"n":12345678901234567890}`).answer("2", `["not an object"]`)
	require.JSONEq(t, `[{"approved":true,"n":12345678901234567890,"ui_event_id":"turn-1/1"},["not an object"],"turn-1/s1"]`,
		k.valueAt(d, "approve", `{"chat_id":"c1"}`))
	require.Equal(t, []tools.Question{
		{Number: 1, Tool: "Approval", Display: "artifact", Payload: json.RawMessage(`{"title":"Deploy?","maskInput":true}`), Timeout: 90 * time.Second},
		{Number: 2, Tool: "Approval", Payload: json.RawMessage(`{"title":"Sure?"}`)},
	}, d.questions)
	require.Equal(t, []tools.Surface{{Number: 1, Tool: "Plan", Display: "view", Payload: json.RawMessage(`{"a":1}`)}}, d.surfaces)
	require.Equal(t, []tools.Progress{{Percent: 100, Message: "starting", Tool: "approve", Corr: "x"}}, d.progress)
	require.NotContains(t, k.log.String(), "names another chat or workflow")
}

const both = `
import asyncio, oneturn
def ask(): return oneturn.ask("Form", {"a": 1}, name="form", schema={"type": "object"}, secret=True, component="C", display="inline", timeout=1.5)
async def aask():
    return await oneturn.ask("Form", {"a": 1}, name="form", schema={"type": "object"}, secret=True, component="C", display="inline", timeout=1.5)
def rest():
    shown = oneturn.show("Plan", {"b": 2}, name="plan", component="P", display="artifact")
    oneturn.progress(50, "half", tool="t", corr=shown)
    oneturn.progress(None)
    oneturn.progress(float("nan"), 5)
    oneturn.dismiss(shown)
    return [oneturn.request_input("Name?"), oneturn.request_input("Key?", True, name="key")]
async def arest():
    shown = await oneturn.show("Plan", {"b": 2}, name="plan", component="P", display="artifact")
    await oneturn.progress(50, "half", tool="t", corr=shown)
    await oneturn.progress(None)
    await oneturn.progress(float("nan"), 5)
    await oneturn.dismiss(shown)
    return [await oneturn.request_input("Name?"), await oneturn.request_input("Key?", True, name="key")]
def own_loop(): return asyncio.run(aask())
def returns_one(): return aask()
async def in_a_thread(): return await asyncio.to_thread(ask)
`

func TestFunctionsOfOneturnWorkInSyncAndAsyncTools(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", both)
	for _, function := range []string{"ask", "aask", "own_loop", "returns_one", "in_a_thread"} {
		d := newHost().answer("form", `"yes"`)
		require.Equal(t, `"yes"`, k.valueAt(d, function, `{}`), function)
		require.Equal(t, []tools.Question{{
			Name: "form", Tool: "Form", Component: "C", Display: "inline", Payload: json.RawMessage(`{"a":1}`),
			Schema: json.RawMessage(`{"type":"object"}`), Timeout: 1500 * time.Millisecond, Secret: true,
		}}, d.questions, function)
	}
	for _, function := range []string{"rest", "arest"} {
		d := newHost().answer("1", `{"text":"Ada"}`).answer("key", `"s3cret"`)
		require.JSONEq(t, `["Ada","s3cret"]`, k.valueAt(d, function, `{}`))
		require.Equal(t, []tools.Question{
			{Number: 1, Input: true, Payload: json.RawMessage(`{"prompt":"Name?","password":false}`)},
			{Name: "key", Input: true, Payload: json.RawMessage(`{"prompt":"Key?","password":true}`), Secret: true},
		}, d.questions)
		require.Equal(t, []tools.Surface{
			{Name: "plan", Tool: "Plan", Component: "P", Display: "artifact", Payload: json.RawMessage(`{"b":2}`)},
		}, d.surfaces)
		require.Equal(t, []tools.Progress{
			{Percent: 50, Message: "half", Tool: "t", Corr: "turn-1/plan"}, {Percent: -1}, {Percent: -1, Message: "5"},
		}, d.progress)
		require.Equal(t, []string{"turn-1/plan"}, d.dismissed)
	}
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestStepsAreEnteredOnceAndReturnJSON(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import oneturn
runs = []
def charge(amount, times=1): runs.append(amount); return {"id": (1, 2), "amount": amount * times}
async def acharge(amount, times=1): return charge(amount, times)
def fails(): raise ValueError("declined")
def sync(): return [oneturn.step("a", charge, 5, times=2), oneturn.step("b", acharge, 6), len(runs)]
async def later(): return [await oneturn.step("a", charge, 5, times=2), await oneturn.step("b", acharge, 6), len(runs)]
def declined(): return oneturn.step("c", fails)
def tried():
    try: oneturn.step("c", fails)
    except ValueError: return oneturn.step("c", charge, 1)["amount"]
async def nested():
    async def inner(): return await oneturn.step("n", charge, 1)
    return await oneturn.step("n", inner)
def twice():
    oneturn.step("e", charge, 1)
    return oneturn.step("e", charge, 2)
async def atwice(): return [await oneturn.step("f", acharge, i) for i in range(2)]
`)
	d := newHost()
	want := `{"id":[1,2],"amount":10}`
	require.JSONEq(t, `[`+want+`,{"id":[1,2],"amount":6},2]`, k.valueAt(d, "sync", `{}`))
	require.JSONEq(t, `[`+want+`,{"id":[1,2],"amount":6},2]`, k.valueAt(d, "later", `{}`), "a later run enters none")
	_, err := k.at(t.Context(), d, "declined", `{}`)
	require.Equal(t, "declined", message(t, err, events.CodeUserError))
	require.NotContains(t, d.steps, "c")
	require.Equal(t, "1", k.valueAt(d, "tried", `{}`))
	for function, name := range map[string]string{"nested": "n", "twice": "e", "atwice": "f"} {
		for range 2 { // also where an earlier run has done the step
			_, err = k.at(t.Context(), d, function, `{}`)
			require.Contains(t, message(t, err, events.CodeToolError), "step '"+name+"': the run has begun a step of this name before")
		}
	}
}

func TestSeveralQuestionsAreNumberedInTheOrderInWhichTheToolAsks(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio, oneturn
async def many(n):
    return await asyncio.gather(*(oneturn.ask("Form", {"i": i}) for i in range(n)))
`)
	const n = 60
	for range 5 {
		d := newHost()
		ended, value := k.background(t.Context(), d, "many", `{"n":60}`)
		for range n {
			q := next(t, d.asked)
			var payload struct {
				I int `json:"i"`
			}
			require.NoError(t, json.Unmarshal(q.Payload, &payload))
			require.Equal(t, payload.I+1, q.Number)
		}
		for range n {
			d.answers <- json.RawMessage(`1`)
		}
		require.NoError(t, next(t, ended))
		require.Len(t, *value, 2*n+1)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}

func TestMoreOperationsThanACallMayHaveOpenFailAlone(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio, oneturn
two_failed, failed = asyncio.Event(), []
async def one(i):
    try:
        return await oneturn.ask("Form", {"i": i})
    except oneturn.UIToolError as e:
        failed.append(str(e)[:9])
        if len(failed) == 2: two_failed.set()
async def many(n):
    answers = await asyncio.gather(*map(one, range(n)))
    return [len([a for a in answers if a is not None]), *failed]
async def wait_for_failures(): await two_failed.wait()
`)
	d := newHost()
	ended, value := k.background(t.Context(), d, "many", `{"n":66}`)
	for range 64 {
		next(t, d.asked)
	}
	// An answer makes room for one more: none is given before the two have been refused.
	k.valueAt(newHost(), "wait_for_failures", `{}`)
	for range 64 {
		d.answers <- json.RawMessage(`1`)
	}
	require.NoError(t, next(t, ended))
	require.JSONEq(t, `[64,"64 questi","64 questi"]`, *value)
}

func TestErrorsOfTheHostReachTheToolAndKeepTheirCode(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio, oneturn
from core.workflow.ui_tools import use_ui_tool, UIToolError, UIToolTimeoutError
async def ask(): return await use_ui_tool("Form", {})
def sask(): return oneturn.ask("Form")
async def caught():
    try: await use_ui_tool("Form", {})
    except TimeoutError as e: return [type(e).__name__, isinstance(e, UIToolError), isinstance(e, asyncio.TimeoutError), e.code, str(e)]
async def caught_all():
    try: await use_ui_tool("Form", {})
    except Exception as e: return [type(e).__name__, e.code, str(e)]
async def shown():
    try: await oneturn.show("Form", {})
    except Exception as e: return [type(e).__name__, e.code, str(e)]
def stepped():
    try: return oneturn.step("s", len, "abc")
    except Exception as e: return str(e)
def forged():
    e = UIToolError("mine"); e.code = "expired"
    raise e
`)
	late := &events.Error{Code: events.CodeExpired, Op: "ask", Msg: "no answer within 5s"}
	for _, function := range []string{"ask", "sask"} {
		_, err := k.at(t.Context(), newHost().refuses(late), function, `{}`)
		require.Equal(t, "no answer within 5s", message(t, err, events.CodeExpired))
		var exception *python.ExceptionError
		require.ErrorAs(t, err, &exception)
		require.Equal(t, "UIToolTimeoutError", exception.Type)
	}
	require.JSONEq(t, `["UIToolTimeoutError",true,true,"expired","no answer within 5s"]`,
		k.valueAt(newHost().refuses(late), "caught", `{}`))
	order := &events.Error{Code: events.CodeToolError, Msg: "the order of questions changed"}
	require.JSONEq(t, `["UIToolError","tool_error","the order of questions changed"]`,
		k.valueAt(newHost().refuses(order), "caught_all", `{}`))
	_, err := k.at(t.Context(), newHost(), "forged", `{}`)
	require.Equal(t, "mine", message(t, err, events.CodeToolError))

	_, err = k.at(t.Context(), nil, "ask", `{}`)
	require.Contains(t, message(t, err, events.CodeToolError), "the caller of this tool supports no questions")

	lost := errors.New("the server cannot be reached")
	_, err = k.at(t.Context(), newHost().refuses(lost), "caught_all", `{}`)
	require.ErrorIs(t, err, lost, "no tool decides by it")
	frontend := newHost()
	frontend.fails = lost
	require.JSONEq(t, `["UIToolError","tool_error","the server cannot be reached"]`, k.valueAt(frontend, "shown", `{}`))
	_, err = k.at(t.Context(), frontend, "stepped", `{}`)
	require.ErrorIs(t, err, lost)
	cancelled := &events.Error{Code: events.CodeCancelled, Msg: "by a user"}
	_, err = k.at(t.Context(), newHost().refuses(cancelled), "caught_all", `{}`)
	require.Equal(t, "by a user", message(t, err, events.CodeCancelled))
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestWhatCannotBeAskedFailsInTheTool(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{MaxFrame: 1 << 16}, "WF/tools/t.py", `
import oneturn
def large(): return oneturn.ask("Form", {"pad": "x" * 100000})
def large_step(): return oneturn.step("s", lambda: "x" * 100000)
def circle():
    d = {}; d["me"] = d
    return oneturn.show("Form", d)
def text(): return oneturn.ask("Form", "a text")
def never(): return oneturn.ask("Form", timeout=0)
def nameless(): return oneturn.step("", len)
`)
	d := newHost()
	for function, want := range map[string]string{
		"large": "over the limit of 65536", "large_step": "over the limit of 65536", "circle": "payload.me refers back",
		"text": "the payload is a str; it must be a dict", "never": "timeout is 0", "nameless": "a step needs a name",
	} {
		_, err := k.at(t.Context(), d, function, `{}`)
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, d.questions)
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestOtherChatsAreOutOfReachAndNamedOnce(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
from core.workflow.ui_tools import *
from core.workflow.ui_tools import use_ui_tool
async def ask():
    for _ in range(3): await use_ui_tool("Form", {}, chat_id="chat-4711", workflow_name="Other")
`)
	d := newHost().answer("1", `{}`).answer("2", `{}`).answer("3", `{}`)
	k.valueAt(d, "ask", `{}`)
	require.Eventually(t, func() bool { return countLines(k, "use_ui_tool names another chat or workflow") == 1 }, 5*time.Second, 5*time.Millisecond)
	k.valueAt(d, "ask", `{}`)
	require.Eventually(t, func() bool { return countLines(k, "use_ui_tool names another chat or workflow") == 2 }, 5*time.Second, 5*time.Millisecond)
	require.NotContains(t, k.log.String(), "chat-4711")
}
