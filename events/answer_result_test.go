package events_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func rejected() *events.ToolCallRejected {
	v := events.NewAnswerResult(events.AnswerInvalid, "t/1", "no")
	v.Errors = []any{map[string]any{"path": "/a"}}
	return v.Rejected(&events.ToolCallResponse{TurnID: events.TurnID{Chat: "c"}, ToolCallID: "t/1", Workflow: "W", UserID: "u", Value: "the answer"})
}

func TestAnswerResultsHaveTheStatusOfTheirCodeAndReadBack(t *testing.T) {
	t.Parallel()
	for code, status := range map[events.AnswerCode]int{
		events.AnswerAccepted: 200, events.AnswerReplayed: 200, events.AnswerForbidden: 403, events.AnswerUnknown: 404, events.AnswerConflict: 409,
		events.AnswerExpired: 410, events.AnswerCancelled: 410, events.AnswerClosed: 410, events.AnswerInvalid: 422,
	} {
		v := events.NewAnswerResult(code, "t/1", "why\nso")
		require.Equal(t, status, v.Status)
		require.Equal(t, status == 200, v.OK())
		body, err := events.EncodeAnswerResult(&v)
		require.NoError(t, err)
		got, err := events.DecodeAnswerResult(body)
		require.NoError(t, err)
		require.Equal(t, &v, got)
	}
	v := events.NewAnswerResult(events.AnswerInvalid, "t/1", "no")
	v.Errors = []any{map[string]any{"path": "/a"}}
	body, err := events.EncodeAnswerResult(&v)
	require.NoError(t, err)
	want := `{"code":"invalid","errors":[{"path":"/a"}],"message":"no","status":422,"tool_call_id":"t/1"}`
	require.Equal(t, want, string(body), "canonical")
	got, err := events.DecodeAnswerResult(body)
	require.NoError(t, err)
	require.Equal(t, &v, got)

	v.Errors = func() {}
	_, err = events.EncodeAnswerResult(&v)
	require.ErrorIs(t, err, events.ErrBadArgs)
}

func TestInvalidAnswerResultIsRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `[]`, `{}`, `{"status":200}`, `{"code":"accepted"}`, `{"status":200,"code":"invalid"}`, `{"status":"200","code":"accepted"}`,
		`{"status":200,"code":"accepted","tool_call_id":{}}`, `{"status":0,"code":"nope"}`, `{"status":1e2,"code":"accepted"}`,
	} {
		_, err := events.DecodeAnswerResult([]byte(body))
		require.ErrorIs(t, err, events.ErrBadArgs, body)
	}
}
