package events_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func fingerprint(t *testing.T, body string) string {
	t.Helper()
	turn, err := events.DecodeTurn([]byte(body))
	require.NoError(t, err)
	fp := events.Fingerprint(turn)
	return hex.EncodeToString(fp[:])
}

func TestFingerprintDependsOnWhatIsAskedNotOnHowItIsWritten(t *testing.T) {
	t.Parallel()
	const base = `{"auto_tool_mode":true,"chat_id":"c","turn_idempotency_key":"t","agent_name":"A","model_name":"M","workflow_name":"W","structured_data":{"a":1.0,"b":[{"x":"é","y":null}]}}`
	want := fingerprint(t, base)
	require.Equal(t, "1ec9adecac70a6ad4ec940eb7efc8197858d7cbd4d9e0499abc4d12aba7aec8a", want, "a change of the fingerprint breaks duplicates across versions")
	for _, same := range []string{
		`{"structured_data": {"b":[{"y":null, "x":"\u00e9"}], "a":1.0}, "workflow_name":"W","model_name":"M","agent_name":"A","turn_idempotency_key":"t","chat_id":"c","auto_tool_mode":true}`,
		`{"type":"chat.structured_output_ready","timestamp":"2026-01-02T03:04:05Z","data":` + base + `}`,
		`{"auto_tool_mode":true,"agent":"A","model_name":"M","context":{"workflow_name":"W","chat_id":"d","enterprise_id":"e","turn_idempotency_key":"u","context_variables":{}},"structured_data":{"a":1.0,"b":[{"x":"é","y":null}]}}`,
	} {
		require.Equal(t, want, fingerprint(t, same), same)
	}
	for _, other := range []string{
		`{"auto_tool_mode":true,"chat_id":"c","turn_idempotency_key":"t","agent_name":"A","model_name":"M","workflow_name":"W","structured_data":{"a":1,"b":[{"x":"é","y":null}]}}`,
		`{"auto_tool_mode":true,"chat_id":"c","turn_idempotency_key":"t","agent_name":"A","model_name":"M","workflow_name":"V","structured_data":{"a":1.0,"b":[{"x":"é","y":null}]}}`,
		`{"auto_tool_mode":true,"chat_id":"c","turn_idempotency_key":"t","agent_name":"B","model_name":"M","workflow_name":"W","structured_data":{"a":1.0,"b":[{"x":"é","y":null}]}}`,
		`{"auto_tool_mode":true,"chat_id":"c","turn_idempotency_key":"t","agent_name":"A","workflow_name":"W","structured_data":{"a":1.0,"b":[{"x":"é","y":null}]}}`,
		`{"auto_tool_mode":true,"chat_id":"c","turn_idempotency_key":"t","agent_name":"A","model_name":"M","workflow_name":"W","structured_data":{"a":1.0,"b":[{"x":"é"}]}}`,
	} {
		require.NotEqual(t, want, fingerprint(t, other), other)
	}
	require.Zero(t, events.Fingerprint(&events.StructuredOutputReady{Data: 1.5}))
}

func TestMsgIDHas38CharactersAndSeparatesKindIdentityAndData(t *testing.T) {
	t.Parallel()
	id := events.TurnID{App: "a", Chat: "c", Run: "r", Turn: "t"}
	fp := [32]byte{1, 2, 3, 4, 5, 6, 7, 0xab, 9}
	base := events.MsgID("k", id, fp)
	require.Regexp(t, `^[A-Za-z0-9_-]{22}010203040506(07ab)$`, base)
	seen := map[string]bool{base: true}
	for _, other := range []string{
		events.MsgID("l", id, fp),
		events.MsgID("k", events.TurnID{App: "b", Chat: "c", Run: "r", Turn: "t"}, fp),
		events.MsgID("k", events.TurnID{App: "a", Chat: "cr", Run: "", Turn: "t"}, fp),
		events.MsgID("k", events.TurnID{App: "a", Chat: "c", Run: "", Turn: "rt"}, fp),
		events.MsgID("k", events.TurnID{App: "a", Chat: "c", Run: "rt", Turn: ""}, fp),
		events.MsgID("k", id, [32]byte{2}),
	} {
		require.Len(t, other, 38)
		require.False(t, seen[other], other)
		seen[other] = true
	}
	id.App = ""
	explicit := id
	explicit.App = events.DefaultApp
	require.Equal(t, events.MsgID("k", explicit, fp), events.MsgID("k", id, fp))
}

func TestJoinIDsNeverGivesTwoListsTheSameBytes(t *testing.T) {
	t.Parallel()
	lists := [][]string{{}, {""}, {"", ""}, {"a:b", "c"}, {"a", "b:c"}, {"ab"}, {"a", "b"}, {"1:a"}, {"1:a1:b"}, {"a1:b"}, {"a", "", "b"}}
	seen := map[string]bool{}
	for _, list := range lists {
		joined := string(events.JoinIDs(list...))
		require.False(t, seen[joined], "%q", list)
		seen[joined] = true
	}
}

func TestCallIDIsTheTurnKeyUntilTheKeyIsNotEnough(t *testing.T) {
	t.Parallel()
	require.Equal(t, "turn-1", events.CallID(events.TurnID{Chat: "c", Turn: "turn-1"}, "0-turn-1"))
	withRun := events.CallID(events.TurnID{Chat: "c", Run: "r", Turn: "turn-1"}, "1-rturn-1")
	require.Regexp(t, `^turn-1@[0-9a-f]{8}$`, withRun)
	require.Equal(t, withRun, events.QualifiedCallID("turn-1", "1-rturn-1"))
	require.NotEqual(t, withRun, events.QualifiedCallID("turn-1", "1-sturn-1"))
}

func TestIdempotencyKeyIsOnePerCallOfATurn(t *testing.T) {
	t.Parallel()
	id := events.TurnID{App: "a", Chat: "c", Run: "r", Turn: "t"}
	key := events.IdempotencyKey(id, "t@12345678")
	require.Regexp(t, `^[0-9a-f]{64}$`, key)
	require.Equal(t, key, events.IdempotencyKey(id, "t@12345678"))
	require.NotEqual(t, key, events.IdempotencyKey(id, "t@87654321"))
	id.Run, id.Turn = "rt", ""
	require.NotEqual(t, key, events.IdempotencyKey(id, "t@12345678"))
}
