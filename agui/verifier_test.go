package agui_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
)

// verify returns the first violation of a stream.
func verify(in *agui.RunAgentInput, events []agui.Event) error {
	v := agui.NewVerifier(in)
	for _, e := range events {
		if err := v.Check(e); err != nil {
			return err
		}
	}
	return v.End()
}

func downgraded(events []agui.Event, in *agui.RunAgentInput) []agui.Event {
	var down []agui.Event
	for _, e := range events {
		if e = agui.Downgrade(e, in.Peer()); e != nil {
			down = append(down, e)
		}
	}
	return down
}

func TestRunsOfTheGatewayAreValidForAllClients(t *testing.T) {
	t.Parallel()
	for _, trace := range traces() {
		for _, peer := range []string{"", "1.0", "1.9"} {
			in := trace.input(peer)
			require.NoError(t, verify(in, downgraded(trace.events, in)), "%s, peer %q", trace.name, peer)
		}
	}
}

func TestBrokenRunsOfTheGatewayAreRefused(t *testing.T) {
	t.Parallel()
	for _, trace := range traces() {
		in := trace.input("1.0")
		refuse := func(what string, i int, events ...any) {
			require.Error(t, verify(in, join(events...)), "%s: %s %d (%s)", trace.name, what, i+1, trace.events[i].Type())
		}
		last := len(trace.events) - 1
		refuse("without the last event", last, trace.events[:last])
		for i, e := range trace.events {
			before, after := trace.events[:i], trace.events[i+1:]
			refuse("an event after the end", i, trace.events, e)
			if last > 0 && i < last {
				refuse("an early end: before", i, before, trace.events[last], e, after)
			}
			switch e.Type() {
			case agui.TypeRunStarted, agui.TypeTextMessageStart, agui.TypeStepStarted, agui.TypeToolCallStart, agui.TypeReasoningStart, agui.TypeReasoningMessageStart:
				refuse("twice", i, before, e, e, after)
				if trace.events[last].Type() == agui.TypeRunFinished {
					refuse("without", i, before, after)
				}
			case agui.TypeTextMessageEnd, agui.TypeStepFinished, agui.TypeToolCallEnd, agui.TypeReasoningEnd, agui.TypeReasoningMessageEnd:
				refuse("twice", i, before, e, e, after)
				if trace.events[last].Type() == agui.TypeRunFinished {
					refuse("without", i, before, after)
				}
			case agui.TypeToolCallArgs:
				refuse("twice", i, before, e, e, after)
				refuse("without", i, before, after)
			case agui.TypeToolCallResult, agui.TypeRunFinished, agui.TypeRunError:
				refuse("twice", i, before, e, e, after)
			default:
			}
			if run, ok := e.(*agui.RunFinished); ok {
				other := *run
				other.RunID = "r2"
				refuse("another run", i, before, &other, after)
				other = *run
				other.ThreadID = "chat_2"
				refuse("another thread", i, before, &other, after)
				if run.Outcome != nil && run.Outcome.Type == agui.OutcomeInterrupt {
					other = *run
					other.Outcome = agui.Interrupted(append(slices.Clone(run.Outcome.Interrupts), run.Outcome.Interrupts[0])...)
					refuse("the same interrupt twice", i, before, &other, after)
					other.Outcome = agui.Interrupted()
					refuse("no interrupt", i, before, &other, after)
				}
			}
		}
	}
}

// violation is a stream that breaks one rule at its last event.
type violation struct {
	rule   string
	events []agui.Event // after RUN_STARTED
	msg    string
}

func TestEachRuleIsChecked(t *testing.T) {
	t.Parallel()
	no := false
	in := trace{held: []agui.Message{
		agui.UserMessage("u1", "hi"), agui.AssistantMessage("a1", "x", agui.Call("c1", "f", "{}")), agui.ToolMessage("res_c1", "c1", ""),
	}}.input("1.0")
	for _, c := range []violation{
		{"second start", join(started()), "started already"},
		{"timestamp", join(&agui.Custom{Name: "x", Base: agui.Base{Timestamp: -1}}), "milliseconds"},
		{"timestamp beyond JavaScript", join(&agui.Custom{Name: "x", Base: agui.Base{Timestamp: 1 << 53}}), "milliseconds"},
		{"custom without name", join(&agui.Custom{}), "name"},
		{"text that the client has", join(&agui.TextMessageStart{MessageID: "a1"}), "already"},
		{"text sent before", join(text("m", "x"), &agui.TextMessageStart{MessageID: "m"}), "already"},
		{"text without id", join(&agui.TextMessageStart{}), "empty"},
		{"text of a tool", join(&agui.TextMessageStart{MessageID: "m", Role: agui.RoleTool}), "role"},
		{"content without text", join(&agui.TextMessageContent{MessageID: "m"}), "not open"},
		{"content of a reasoning message", join(&agui.ReasoningMessageStart{MessageID: "m"}, &agui.TextMessageContent{MessageID: "m"}), "not open"},
		{"call that the client has", join(&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "f"}), "already"},
		{"call sent before", join(call("c", "f"), &agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f"}), "already"},
		{"call without name", join(&agui.ToolCallStart{ToolCallID: "c"}), "toolCallName"},
		{"text with the message of a call", join(call("c", "f"), &agui.TextMessageStart{MessageID: "c"}), "already"},
		{"arguments that are a list", join(&agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f"}, &agui.ToolCallArgs{ToolCallID: "c", Delta: "[]"}, &agui.ToolCallEnd{ToolCallID: "c"}), "JSON object"},
		{"no arguments", join(&agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f"}, &agui.ToolCallEnd{ToolCallID: "c"}), "JSON object"},
		{"two objects", join(&agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f"}, &agui.ToolCallArgs{ToolCallID: "c", Delta: "{}"}, &agui.ToolCallArgs{ToolCallID: "c", Delta: "{}"}, &agui.ToolCallEnd{ToolCallID: "c"}), "JSON object"},
		{"result that the client has", join(result("c1", "")), "has a result"},
		{"result without call", join(&agui.ToolCallResult{MessageID: "m"}), "toolCallId"},
		{"result as a message that is known", join(&agui.ToolCallResult{MessageID: "u1", ToolCallID: "c"}), "already"},
		{"step without name", join(&agui.StepStarted{}), "stepName"},
		{"step of another", join(&agui.StepStarted{StepName: "s", SubagentRunID: "a"}, &agui.StepFinished{StepName: "s"}), "not open"},
		{"patch", join(&agui.StateDelta{Delta: agui.Patch{agui.Add("x", 1)}}), "slash"},
		{"delta of an unknown activity", join(&agui.ActivityDelta{MessageID: "a", ActivityType: "x"}), "does not have"},
		{"activity as a message that is known", join(&agui.ActivitySnapshot{MessageID: "u1", ActivityType: "x"}), "not an activity"},
		{"activity without type", join(&agui.ActivitySnapshot{MessageID: "a"}), "activityType"},
		{"same message twice", join(&agui.MessagesSnapshot{Messages: []agui.Message{agui.UserMessage("u", ""), agui.UserMessage("u", "")}}), "twice"},
		{"same call twice", join(&agui.MessagesSnapshot{Messages: []agui.Message{agui.AssistantMessage("a", "", agui.Call("c", "f", ""), agui.Call("c", "f", ""))}}), "twice"},
		{"same result twice", join(&agui.MessagesSnapshot{Messages: []agui.Message{agui.ToolMessage("a", "c", ""), agui.ToolMessage("b", "c", "")}}), "twice"},
		{"activity that becomes a text", join(&agui.ActivitySnapshot{MessageID: "a", ActivityType: "x"}, &agui.MessagesSnapshot{Messages: []agui.Message{agui.AssistantMessage("a", "")}}), "another role"},
		{"text that becomes reasoning", join(&agui.MessagesSnapshot{Messages: []agui.Message{{ID: "a1", Role: agui.RoleReasoning}}}), "another role"},
		{"unknown role", join(&agui.MessagesSnapshot{Messages: []agui.Message{{ID: "a", Role: "poet"}}}), "role"},
		{"message without id", join(&agui.MessagesSnapshot{Messages: []agui.Message{{Role: agui.RoleUser}}}), "empty"},
		{"snapshot without the open text", join(&agui.TextMessageStart{MessageID: "m"}, &agui.MessagesSnapshot{}), "not in the snapshot"},
		{"streamed after the snapshot", join(&agui.MessagesSnapshot{Messages: []agui.Message{agui.AssistantMessage("m", "x")}}, &agui.TextMessageStart{MessageID: "m"}), "already"},
		{"result after the snapshot", join(&agui.MessagesSnapshot{Messages: []agui.Message{agui.ToolMessage("r", "c", "x")}}, result("c", "")), "has a result"},
		{"unknown outcome", join(finished(&agui.Outcome{Type: "done"})), "unknown outcome"},
		{"fields of another outcome", join(finished(&agui.Outcome{Type: agui.OutcomeCancelled, Interrupts: []agui.Interrupt{asked("c")}})), "another one"},
		{"interrupt without reason", join(finished(agui.Interrupted(agui.Interrupt{ID: "i"}))), "reason"},
		{"interrupt of an answered call", join(finished(agui.Interrupted(asked("c1")))), "has a result"},
		{"schema that is not an object", join(finished(agui.Interrupted(agui.Interrupt{ID: "i", Reason: "r", ResponseSchema: []byte(`true`)}))), "object"},
		{"unknown pending call", join(finished(agui.Success("c9"))), "unknown"},
		{"answered pending call", join(finished(agui.Success("c1"))), "has a result"},
		{"pending call twice", join(call("c", "f"), finished(agui.Success("c", "c"))), "twice"},
		{"open subagent", join(&agui.SubagentStarted{SubagentRunID: "s", Name: "n"}, finished(nil)), "open"},
		{"subagent twice", join(&agui.SubagentStarted{SubagentRunID: "s", Name: "n"}, &agui.SubagentFinished{SubagentRunID: "s"}, &agui.SubagentStarted{SubagentRunID: "s", Name: "n"}), "already"},
		{"subagent without name", join(&agui.SubagentStarted{SubagentRunID: "s"}), "name"},
		{"unknown parent", join(&agui.SubagentStarted{SubagentRunID: "s", Name: "n", ParentSubagentRunID: "p"}), "not been started"},
		{"unknown subagent", join(&agui.SubagentError{SubagentRunID: "s"}), "not open"},
		{"text of another subagent", join(&agui.TextMessageStart{MessageID: "m"}, &agui.TextMessageContent{MessageID: "m", SubagentRunID: "s"}), "does not belong"},
		{"call in the message of another", join(&agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "a1", SubagentRunID: "s"}), "does not belong"},
		{"call that inherits its subagent", join(
			&agui.TextMessageStart{MessageID: "m", SubagentRunID: "s"}, &agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "m"},
			&agui.ToolCallArgs{ToolCallID: "c", SubagentRunID: "other"}), "does not belong"},
		{"activity of another", join(
			&agui.ActivitySnapshot{MessageID: "a", ActivityType: "x", SubagentRunID: "s"}, &agui.ActivitySnapshot{MessageID: "a", ActivityType: "x", SubagentRunID: "other", Replace: &no},
			&agui.ActivityDelta{MessageID: "a", ActivityType: "x", SubagentRunID: "other"}), "does not belong"},
		{"encrypted value of another", join(&agui.ReasoningEncryptedValue{Subtype: "tool-call", EntityID: "c1", SubagentRunID: "s"}), "does not belong"},
		{"encrypted value of an unknown kind", join(&agui.ReasoningEncryptedValue{Subtype: "x", EntityID: "c1"}), "subtype"},
		{"open span", join(&agui.ReasoningStart{MessageID: "r"}, finished(nil)), "open"},
		{"first chunk without id", join(&agui.TextMessageChunk{Delta: "x"}), "first chunk"},
		{"first chunk of a call without name", join(&agui.ToolCallChunk{ToolCallID: "c"}), "first chunk"},
		{"chunk after the message", join(&agui.TextMessageChunk{MessageID: "m"}, &agui.Custom{Name: "x"}, &agui.TextMessageChunk{Delta: "x"}), "first chunk"},
		{"chunks without JSON", join(&agui.ToolCallChunk{ToolCallID: "c", ToolCallName: "f", Delta: "{"}, &agui.Custom{Name: "x"}), "JSON object"},
		{"chunk of a tool", join(&agui.TextMessageChunk{MessageID: "m", Role: agui.RoleTool}), "role"},
		{"chunk of a subagent", join(&agui.TextMessageChunk{MessageID: "m", SubagentRunID: "s"}), "subagent"},
		{"reasoning chunk of a subagent", join(&agui.ReasoningMessageChunk{MessageID: "m", SubagentRunID: "s"}), "subagent"},
		{"call chunk of a subagent", join(&agui.ToolCallChunk{ToolCallID: "c", ToolCallName: "f", SubagentRunID: "s"}), "subagent"},
		{"chunk of another role", join(&agui.TextMessageChunk{MessageID: "m"}, &agui.TextMessageChunk{Role: agui.RoleUser}), "first chunk's"},
		{"chunk of another tool", join(&agui.ToolCallChunk{ToolCallID: "c", ToolCallName: "f", Delta: "{}"}, &agui.ToolCallChunk{ToolCallName: "g"}), "first chunk's"},
		{"call in the message of a user", join(&agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "u1"}), "cannot have the call"},
		{"call with the id of a message", join(&agui.ToolCallStart{ToolCallID: "a1", ToolCallName: "f"}), "cannot have the call"},
		{"span of another subagent", join(&agui.ReasoningMessageStart{MessageID: "r"}, &agui.ReasoningStart{MessageID: "r", SubagentRunID: "s"}), "does not belong"},
		{"chunk of what the client has", join(&agui.ReasoningMessageChunk{MessageID: "a1"}), "already"},
		{"event of another package", join(foreign{&agui.RunStarted{}}), "not an event"},
	} {
		v := agui.NewVerifier(in)
		require.NoError(t, v.Check(started()))
		for _, e := range c.events[:len(c.events)-1] {
			require.NoError(t, v.Check(e), c.rule)
		}
		err := v.Check(c.events[len(c.events)-1])
		require.ErrorContains(t, err, c.msg, c.rule)
		require.ErrorAs(t, err, new(*agui.ViolationError))
		// What was refused does not count: the run can still end.
		require.NoError(t, v.Check(&agui.RunError{Message: "internal error"}), c.rule)
		require.NoError(t, v.End())
	}
}

// foreign is an event that is not of the package.
type foreign struct{ *agui.RunStarted }

func (foreign) Type() agui.EventType { return "META" }

func TestRunHasToStartWithItsIDsAndAVersion(t *testing.T) {
	t.Parallel()
	in := trace{}.input("1.0")
	for _, first := range []agui.Event{
		&agui.Custom{Name: "x"}, finished(nil),
		&agui.RunStarted{ThreadID: "chat_1", RunID: "r1"},
		&agui.RunStarted{ThreadID: "chat_1", RunID: "r1", ProtocolVersion: "2.0"},
		&agui.RunStarted{ThreadID: "chat_1", RunID: "r2", ProtocolVersion: "1.0"},
		&agui.RunStarted{ThreadID: "chat_2", RunID: "r1", ProtocolVersion: "1.0"},
	} {
		require.Error(t, agui.NewVerifier(in).Check(first))
	}
	require.ErrorContains(t, agui.NewVerifier(in).End(), "has not ended")
}

func TestOldClientsReceiveNothingThatTheyReject(t *testing.T) {
	t.Parallel()
	in := trace{}.input("")
	expiring := asked("c")
	expiring.ExpiresAt = "2030-01-01T00:00:00Z"
	for _, e := range []agui.Event{
		&agui.SubagentStarted{SubagentRunID: "s", Name: "n"},
		&agui.ToolCallResult{MessageID: "m", ToolCallID: "c", Content: agui.Content{Parts: allParts()}},
		&agui.MessagesSnapshot{Messages: allMessages()},
		finished(agui.Cancelled()), finished(agui.Success("c")), finished(agui.Interrupted(expiring)),
	} {
		v := agui.NewVerifier(in)
		require.NoError(t, v.Check(started()))
		require.ErrorContains(t, v.Check(e), "before 1.0", e.Type())
		if down := agui.Downgrade(e, in.Peer()); down != nil {
			require.NoError(t, v.Check(down))
		}
	}
}

func TestChunksAreClosedByWhatFollows(t *testing.T) {
	t.Parallel()
	in := trace{}.input("1.0")
	require.NoError(t, verify(in, join(started(),
		&agui.TextMessageChunk{MessageID: "m", Delta: "a"}, &agui.Raw{}, &agui.TextMessageChunk{Delta: "b"},
		&agui.TextMessageChunk{MessageID: "n", Delta: "c"},
		&agui.ToolCallChunk{ToolCallID: "c", ToolCallName: "f", Delta: "{"}, &agui.ToolCallChunk{Delta: "}"},
		&agui.ReasoningMessageChunk{MessageID: "r", Delta: "x"}, &agui.ReasoningMessageChunk{MessageID: "r"},
		finished(nil))))
}

// A guard may not be a way to use up the memory of a server.
func TestMemoryOfTheVerifierIsBounded(t *testing.T) {
	t.Parallel()
	v := agui.NewVerifier(trace{}.input("1.0"))
	require.NoError(t, v.Check(started()))
	require.NoError(t, v.Check(&agui.ToolCallStart{ToolCallID: "c", ToolCallName: "f"}))
	piece := &agui.ToolCallArgs{ToolCallID: "c", Delta: string(make([]byte, 1<<20))}
	for range 8 {
		require.NoError(t, v.Check(piece))
	}
	require.ErrorContains(t, v.Check(piece), "bytes")

	for name, next := range map[string]func(v *agui.Verifier, id string) error{
		"texts are open": func(v *agui.Verifier, id string) error { return v.Check(&agui.TextMessageStart{MessageID: id}) },
		"steps are open": func(v *agui.Verifier, id string) error { return v.Check(&agui.StepStarted{StepName: id}) },
		"ids in a run":   func(v *agui.Verifier, id string) error { return v.Check(result(id, "")) },
		"ids of messages": func(v *agui.Verifier, id string) error {
			return v.Check(&agui.MessagesSnapshot{Messages: []agui.Message{agui.UserMessage(id, ""), agui.UserMessage("x"+id, "")}})
		},
	} {
		v := agui.NewVerifier(trace{}.input("1.0"))
		require.NoError(t, v.Check(started()))
		var err error
		count := 0
		for ; err == nil && count < 250_000; count++ {
			err = next(v, strconv.Itoa(count))
		}
		require.ErrorAs(t, err, new(*agui.ViolationError), name)
		require.Greater(t, count, 9_000, name)
		require.NoError(t, v.Check(&agui.RunError{Message: "x"}), name)
	}
}

// A client may send any history; what is beyond the bound is not guarded, and accepted.
func TestLongHistoryOfAnInputIsAccepted(t *testing.T) {
	t.Parallel()
	held := make([]agui.Message, 20_000)
	for i := range held {
		held[i] = agui.UserMessage(strconv.Itoa(i), "")
	}
	v := agui.NewVerifier(trace{held: held}.input("1.0"))
	require.NoError(t, v.Check(started()))
	require.NoError(t, v.Check(&agui.TextMessageStart{MessageID: "0"}))
	require.Error(t, v.Check(&agui.TextMessageStart{MessageID: "19999"}))
}
