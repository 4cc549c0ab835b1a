package docs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// again reads an event into the struct of its kind and writes it again.
func again[E any](m *events.Message) ([]byte, error) {
	var e E
	if err := m.As(&e); err != nil {
		return nil, err
	}
	return events.Encode(m.Kind, &e, m.Timestamp)
}

// TestEventsOfThePageAreReadAndWrittenByTheLibrary: nothing that the page shows is lost or added
// by a trip through the types of Go.
func TestEventsOfThePageAreReadAndWrittenByTheLibrary(t *testing.T) {
	t.Parallel()
	trips := map[string]func(m *events.Message) ([]byte, error){
		events.KindToolCall:        again[events.ToolCall],
		events.KindToolResponse:    again[events.ToolResponse],
		events.KindTurnConflict:    again[events.TurnConflict],
		events.KindToolCallAck:     again[events.ToolCallAck],
		events.KindToolCallDismiss: again[events.ToolCallDismiss],
		events.KindPlanStarted:     again[events.PlanStarted],
		events.KindPlanFinished:    again[events.PlanFinished],
		events.KindPlanReady: func(m *events.Message) ([]byte, error) {
			e, err := m.PlanReady()
			if err != nil {
				return nil, err
			}
			return events.EncodeTurn(e, m.Timestamp)
		},
		events.KindToolProgress:     again[events.ToolProgress],
		events.KindRunComplete:      again[events.RunComplete],
		events.KindToolCallRejected: again[events.ToolCallRejected],
		events.KindUIToolComplete:   again[events.UIToolComplete],
		events.KindUIToolDismiss:    again[events.UIToolDismiss],
		events.KindToolCallResponse: func(m *events.Message) ([]byte, error) {
			r, err := m.Answer()
			if err != nil {
				return nil, err
			}
			return events.EncodeAnswer(r, m.Timestamp)
		},
		events.KindExpire: func(m *events.Message) ([]byte, error) {
			e, err := m.Expire()
			if err != nil {
				return nil, err
			}
			return events.EncodeExpire(e, m.Timestamp)
		},
	}
	seen := map[string]bool{}
	for _, b := range fenced(t, "wire-contract.md", "json") {
		m, err := events.Parse([]byte(b.text))
		require.NoError(t, err, "line %d", b.line)
		if trips[m.Kind] == nil {
			continue
		}
		seen[m.Kind] = true
		body, err := trips[m.Kind](m)
		require.NoError(t, err, "line %d", b.line)
		require.JSONEq(t, b.text, string(body), "line %d", b.line)
	}
	require.Len(t, seen, len(trips))
}

// data of the event of a kind that the page shows, the one with awaiting_response if there is one.
func shownEvent(t *testing.T, kind string) *events.Message {
	t.Helper()
	var found *events.Message
	for _, b := range fenced(t, "wire-contract.md", "json") {
		if m, err := events.Parse([]byte(b.text)); err == nil && m.Kind == kind && (found == nil || m.Data["awaiting_response"] == true) {
			found = m
		}
	}
	require.NotNil(t, found, kind)
	return found
}

func TestQuestionOfThePageIsAnsweredByItsAnswer(t *testing.T) {
	t.Parallel()
	var q events.ToolCall
	require.NoError(t, shownEvent(t, events.KindToolCall).As(&q))
	s, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	require.Equal(t, s.In(subjects.DefaultPool, events.KindToolCallResponse, q.AppID, q.WorkflowName, q.ChatID), q.Answer.Subject)
	require.Equal(t, events.QuestionID(events.CallID(events.TurnID{Turn: q.Turn}, ""), events.AskID("", 1)), q.ToolCallID)
	require.Equal(t, time.Hour, q.Answer.ExpiresAt.Sub(shownEvent(t, events.KindToolCall).Timestamp))

	r, err := shownEvent(t, events.KindToolCallResponse).Answer()
	require.NoError(t, err)
	require.Equal(t, q.ToolCallID, r.ToolCallID)
	require.Equal(t, []string{q.AppID, q.ChatID, q.WorkflowName, q.UserID}, []string{r.App, r.Chat, r.Workflow, r.UserID})

	var ack events.ToolCallAck
	require.NoError(t, shownEvent(t, events.KindToolCallAck).As(&ack))
	require.Equal(t, *q.Ack(events.AckAccepted, r.UserID), ack)

	e, err := shownEvent(t, events.KindExpire).Expire()
	require.NoError(t, err)
	require.Equal(t, subjects.TurnKey(q.AppID, q.ChatID, q.RunID, q.Turn).String(), e.Key)
	require.Equal(t, q.ToolCallID, events.QuestionID(events.CallID(e.TurnID, ""), e.Ask))
	require.Equal(t, q.Answer.ExpiresAt, e.ExpiresAt)
}

func TestPageHasTheNamesAndResultsOfAnswersOfTheCode(t *testing.T) {
	t.Parallel()
	page := text(t, "wire-contract.md")
	row := func(what string) (names []string) {
		_, rest, ok := strings.Cut(page, "\n- **"+what+"**: ")
		require.True(t, ok, what)
		item, _, _ := strings.Cut(rest, "\n- ")
		for name := range strings.SplitSeq(strings.Join(strings.Fields(item), " "), "`, `") {
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "`"), "`")
			names = append(names, name)
		}
		return names
	}
	for _, kind := range row("kind of the body") {
		require.True(t, events.AnswerKind(kind), kind)
		_, err := events.DecodeAnswer(fmt.Appendf(nil, `{"type":%q,"data":{"chat_id":"c","corr":"t/1","text":""}}`, kind))
		require.NoError(t, err)
	}
	for what, answer := range map[string]string{"the question": `"response":1`, "the answer, any JSON value": `"tool_call_id":"1"`} {
		names := row(what)
		require.Greater(t, len(names), 4)
		for i, name := range names {
			body := fmt.Appendf(nil, `{"chat_id":"c",%s,%q:"1"`, answer, name)
			for _, later := range names[i+1:] { // they do not count
				body = fmt.Appendf(body, `,%q:"no"`, later)
			}
			r, err := events.DecodeAnswer(append(body, '}'))
			require.NoError(t, err, name)
			require.Equal(t, "1", r.ToolCallID)
			require.Contains(t, []string{"1", fmt.Sprint(r.Value)}, "1")
			require.NotEqual(t, "no", r.Value)
		}
	}

	codes := itemsOf(t, "wire-contract.md", "\nVerdict codes:")
	require.Len(t, codes, 10)
	for _, code := range codes {
		require.Contains(t, page, fmt.Sprintf("\n- `%s` (%d): ", code, events.AnswerCode(code).Status()))
	}
	require.Contains(t, page, "`"+subjects.HeaderReply+"`")
	require.Equal(t, 1<<20, events.MaxAnswerBytes, "the page documents 1 MiB")
	require.Equal(t, 128, events.MaxAskBytes, "the page documents 128 bytes")
	for _, b := range fenced(t, "wire-contract.md", "json") {
		if !strings.HasPrefix(b.text, `{"status"`) {
			continue
		}
		v, err := events.DecodeAnswerResult([]byte(b.text))
		require.NoError(t, err)
		body, err := events.EncodeAnswerResult(v)
		require.NoError(t, err)
		require.JSONEq(t, b.text, string(body))
		return
	}
	require.Fail(t, "no verdict is shown")
}
