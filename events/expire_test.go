package events_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func sampleExpire() *events.Expire {
	return &events.Expire{
		TurnID: events.TurnID{App: "app", Chat: "c", Run: "r", Turn: "t"}, Workflow: "W", Pool: "gpu", Key: "app.c.1-rt.0", Ask: "1",
		ToolCallID: "t@01234567/1", ExpiresAt: noon.Add(time.Hour),
	}
}

func TestExpireIsReadBackAsItWasSent(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*events.Expire){
		func(*events.Expire) {},
		func(e *events.Expire) { e.Forced, e.ExpiresAt = true, time.Time{} },
		func(e *events.Expire) { e.Pool, e.Run, e.Turn, e.Workflow, e.ToolCallID = "", "", "", "", "" },
	} {
		want := sampleExpire()
		change(want)
		body, err := events.EncodeExpire(want, noon)
		require.NoError(t, err)
		got, err := events.DecodeExpire(body)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	body, err := events.EncodeExpire(sampleExpire(), noon)
	require.NoError(t, err)
	want := `{"type":"chat.expire","data":{"kind":"expire","key":"app.c.1-rt.0","ask":"1","tool_call_id":"t@01234567/1","turn":"t","run_id":"r","pool":"gpu",` +
		`"expires_at":"2026-01-02T13:00:00.007Z","context":{"app_id":"app","chat_id":"c","workflow_name":"W"}},"timestamp":"2026-01-02T12:00:00.007Z"}`
	require.Equal(t, want, string(body), "also the order counts")
}

func TestExpireThatNamesNoQuestionIsRefused(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"key":"k","ask":"1"}`:                                "chat_id is missing",
		`{"chat_id":"c","ask":"1"}`:                            "key is missing",
		`{"chat_id":"c","key":"k"}`:                            "ask is missing",
		`{"chat_id":"c","key":"k","ask":1}`:                    "ask is a number",
		`{"chat_id":"c","key":"k","ask":"1","expires_at":"x"}`: "expires_at is a string",
		`{"chat_id":"c","key":"k","ask":"1","pool":[]}`:        "pool is an array",
		`{"kind":"cancel","chat_id":"c","key":"k","ask":"1"}`:  `kind is "cancel"`,
		`[]`: "expected an object",
	} {
		_, err := events.DecodeExpire([]byte(body))
		require.ErrorIs(t, err, events.ErrBadArgs, body)
		require.ErrorContains(t, err, want, body)
	}
	e, err := events.DecodeExpire([]byte(`{"chat_id":"c","key":"k","ask":"1","forced":"true"}`))
	require.NoError(t, err)
	require.False(t, e.Forced, "only the JSON value true is true")
	_, err = events.EncodeExpire(&events.Expire{}, noon)
	require.ErrorIs(t, err, events.ErrBadArgs)
}
