package oneturntest_test

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// newCorrected is a chat without faults: the output of the architect was corrected twice, the one of the critic once.
func newCorrected(t *testing.T) *conversation {
	t.Helper()
	s := &conversation{t: t, Facts: &oneturntest.Facts{Messages: []oneturntest.SentMessage{{Event: architect()}, {Event: critic()}}}}
	first, second := architect(), critic()
	bad, good := map[string]any{"titel": "Shop"}, object()
	s.text(&first, idempotency.DueTurnHandoff, &events.Text{Turn: "t1", Model: "Plan", StructuredOutput: bad, Content: "A shop.", Corrections: 2})
	s.turn(0, bad, events.CodeValidationFailed)
	s.reply(&first, 1, events.Correction{Content: "{", Unread: &events.Rejection{Content: "no"}, PromptTokens: 10, CompletionTokens: 1})
	s.turn(1, "{", events.CodeValidationFailed)
	s.reply(&first, 2, events.Correction{Content: "better", StructuredOutput: good, PromptTokens: 20, CompletionTokens: 2})
	s.turn(2, good, "")
	s.follows(&first, events.RecordHandoff, &events.Handoff{From: "Architect", Reason: "no_rule", Turn: "t1"})
	s.text(&second, idempotency.DueNothing, &events.Text{Model: "Plan", Content: "{", Unread: &events.Rejection{Content: "no"}, TurnSequence: 2, Corrections: 1})
	s.reply(&second, 1, events.Correction{Content: "better", StructuredOutput: good, PromptTokens: 30})
	s.follows(&second, events.RecordStructuredOutput, &events.StructuredOutput{Success: true, Status: "ok", Payload: good, Usage: &events.Usage{Calls: 1, PromptTokens: 30}})
	return s
}

// turn stores the turn of the architect's message, or of correction n of it.
func (s *conversation) turn(n int, data any, code events.Code) {
	s.t.Helper()
	name := func(n int) string { return (&events.Text{Turn: "t1"}).CorrectedTurn(n) }
	sum := events.Fingerprint(&events.StructuredOutputReady{Workflow: "WF", Agent: "Architect", Model: "Plan", Data: data})
	var usage *events.Usage
	of := ""
	if n > 0 {
		usage, of = &events.Usage{Calls: n, PromptTokens: int64(10*n + 10*(n-1)), CompletionTokens: int64(n + n - 1)}, name(n-1)
	}
	k := subjects.TurnKey("app", "chat", "", name(n))
	s.record(k.Public("tool_call"), events.KindToolCall, &events.ToolCall{ToolCallID: name(n), AppID: "app", ChatID: "chat", Turn: name(n), CorrectionOf: of, Usage: usage}, idempotency.Meta{
		Owner: "w", Nonce: name(n), Epoch: 1, Message: "message-0-m1", Fingerprint: hex.EncodeToString(sum[:]), Outcome: string(code),
	})
	s.record(k.Public("tool_response"), events.KindToolResponse, &events.ToolResponse{
		ToolCallID: name(n), AppID: "app", ChatID: "chat", Turn: name(n), Status: "ok", Code: code, Correcting: code != "", Usage: usage,
	}, idempotency.Meta{Nonce: name(n), Epoch: 1})
}

// reply stores the call and the reply of the model for correction n of a message.
func (s *conversation) reply(e *events.AgentMessage, n int, read events.Correction) {
	s.t.Helper()
	k := keyOf(e).WithCall("c" + strconv.Itoa(n))
	s.record(k.Public("tool_call"), events.KindToolCall, &events.ToolCall{ToolCallID: e.ID, AppID: "app", ChatID: "chat"}, idempotency.Meta{})
	s.record(k.Public("tool_response"), events.KindToolResponse, &events.ToolResponse{ToolCallID: e.ID, AppID: "app", ChatID: "chat", Status: "ok", Payload: events.JSONOf(read)}, idempotency.Meta{})
}

func TestCorrectionsWithoutFaultsAreInOrder(t *testing.T) {
	t.Parallel()
	require.Empty(t, oneturntest.CheckMessages(newCorrected(t).Facts))
}

func TestEachFaultOfACorrectionIsFound(t *testing.T) {
	t.Parallel()
	const ( // sequences of records
		text, firstEnd, firstAsked, secondEnd, secondReply, third, thirdEnd, output = 1, 3, 4, 7, 9, 10, 11, 16
	)
	for name, one := range map[string]struct {
		change func(s *conversation)
		want   string
	}{
		"more corrections than allowed":       {func(s *conversation) { s.replace(text, `"corrections":2`, `"corrections":1`) }, "its text allows 1"},
		"asked before the turn before failed": {func(s *conversation) { s.swap(firstEnd, firstAsked) }, "its turn before is not to be corrected"},
		"asked before the reply before":       {func(s *conversation) { s.without("c1.tool_response") }, "the reply before is not stored"},
		"claimed before the reply":            {func(s *conversation) { s.swap(secondReply, third) }, "without the reply to correction 2"},
		"claimed without a reply":             {func(s *conversation) { s.without("c2.tool_response") }, "without the reply to correction 2"},
		"claimed before the turn before":      {func(s *conversation) { s.swap(secondEnd, third) }, "the turn before is not to be corrected"},
		"corrects another turn":               {func(s *conversation) { s.replace(third, `"correction_of":"t1~1"`, `"correction_of":"t1"`) }, `it corrects "t1"`},
		"other data than the reply":           {func(s *conversation) { s.replace(secondReply, `"title":"Shop"`, `"title":"Bar"`) }, "other data than the reply to correction 2"},
		"a call that is not counted":          {func(s *conversation) { s.replace(third, `"calls":2`, `"calls":1`) }, "its usage is"},
		"tokens that are not counted":         {func(s *conversation) { s.replace(thirdEnd, `"prompt_tokens":30`, `"prompt_tokens":20`) }, "its usage is"},
		"no turn follows":                     {func(s *conversation) { s.without("t1=7E2.0.tool_call") }, "no turn follows"},
		"a success that is to be corrected":   {func(s *conversation) { s.replace(firstEnd, `"code":"validation_failed",`, ``) }, "correcting is true"},
		"a failure that is not corrected":     {func(s *conversation) { s.replace(secondEnd, `"correcting":true`, `"correcting":false`) }, "correcting is false"},
		"an output that is not counted":       {func(s *conversation) { s.replace(output, `"prompt_tokens":30`, `"prompt_tokens":1`) }, "the usage of its structured output"},
		"an output before its correction":     {func(s *conversation) { s.swap(output, output-1) }, "the replies are not stored before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCorrected(t)
			one.change(s)
			found := oneturntest.CheckMessages(s.Facts)
			require.NotEmpty(t, found)
			require.Contains(t, fmt.Sprint(found), one.want)
		})
	}
}
