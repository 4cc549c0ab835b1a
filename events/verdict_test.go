package events_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func rejected() *events.ToolCallRejected {
	v := events.NewVerdict(events.VerdictInvalid, "t/1", "no")
	v.Errors = []any{map[string]any{"path": "/a"}}
	return v.Rejected(&events.ToolCallResponse{TurnID: events.TurnID{Chat: "c"}, ToolCallID: "t/1", Workflow: "W", UserID: "u", Value: "the answer"})
}

func TestVerdictsHaveTheStatusOfTheirCodeAndReadBack(t *testing.T) {
	t.Parallel()
	for code, status := range map[events.VerdictCode]int{
		events.VerdictAccepted: 200, events.VerdictReplayed: 200, events.VerdictForbidden: 403, events.VerdictUnknown: 404, events.VerdictAnswered: 409,
		events.VerdictExpired: 410, events.VerdictCancelled: 410, events.VerdictClosed: 410, events.VerdictInvalid: 422,
	} {
		v := events.NewVerdict(code, "t/1", "why\nso")
		require.Equal(t, status, v.Status)
		require.Equal(t, status == 200, v.OK())
		body, err := events.EncodeVerdict(&v)
		require.NoError(t, err)
		got, err := events.DecodeVerdict(body)
		require.NoError(t, err)
		require.Equal(t, &v, got)
	}
	v := events.NewVerdict(events.VerdictInvalid, "t/1", "no")
	v.Errors = []any{map[string]any{"path": "/a"}}
	body, err := events.EncodeVerdict(&v)
	require.NoError(t, err)
	want := `{"code":"invalid","errors":[{"path":"/a"}],"message":"no","status":422,"tool_call_id":"t/1"}`
	require.Equal(t, want, string(body), "canonical")
	got, err := events.DecodeVerdict(body)
	require.NoError(t, err)
	require.Equal(t, &v, got)

	v.Errors = func() {}
	_, err = events.EncodeVerdict(&v)
	require.ErrorIs(t, err, events.ErrBadArgs)
}

func TestWhatIsNoVerdictIsRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `[]`, `{}`, `{"status":200}`, `{"code":"accepted"}`, `{"status":200,"code":"invalid"}`, `{"status":"200","code":"accepted"}`,
		`{"status":200,"code":"accepted","tool_call_id":{}}`, `{"status":0,"code":"nope"}`, `{"status":1e2,"code":"accepted"}`,
	} {
		_, err := events.DecodeVerdict([]byte(body))
		require.ErrorIs(t, err, events.ErrBadArgs, body)
	}
}
