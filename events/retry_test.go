package events_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

const retryBody = `{"kind":"retry","turn_idempotency_key":"t~retry1","run_id":"r","resume_of":"t","rerun":["2","fan[1]","2"],"agent_name":"ignored",
 "structured_data":{"x":1},"context":{"chat_id":"c","app_id":"app","workflow_name":"WF","user_id":"ignored","context_variables":{"x":1}}}`

func wantRetry() *events.StructuredOutputReady {
	return events.NewRetry(events.TurnID{App: "app", Chat: "c", Run: "r", Turn: "t~retry1"}, "WF", "t", []string{"fan[1]", "2"})
}

func TestRetryNamesATurnAndCarriesNoData(t *testing.T) {
	t.Parallel()
	want := wantRetry()
	want.ContextVariables = map[string]any{"x": number("1")}
	for _, body := range []string{retryBody, `{"type":"chat.retry","data":` + retryBody + `}`} {
		got, err := events.DecodeTurn([]byte(body))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, events.KindRetry, got.InboundKind())
	}
	body, err := events.EncodeTurn(want, noon)
	require.NoError(t, err)
	require.Contains(t, string(body), `{"type":"chat.retry","data":{"kind":"retry","resume_of":"t","rerun":["2","fan[1]"],"turn_idempotency_key":"t~retry1"`)
	got, err := events.DecodeTurn(body)
	require.NoError(t, err)
	want.Timestamp = noon
	require.Equal(t, want, got)
}

func TestRetriesOfTheSameTurnHaveOneFingerprintAndOthersAnother(t *testing.T) {
	t.Parallel()
	m, err := events.Parse([]byte(retryBody))
	require.NoError(t, err)
	turn, err := m.Retry()
	require.NoError(t, err)
	_, fingerprint := m.CanonicalData(turn)
	require.Equal(t, events.Fingerprint(wantRetry()), fingerprint, "structured data of a retry does not count")
	for _, other := range []*events.StructuredOutputReady{
		events.NewRetry(turn.TurnID, "WF", "t2", turn.Rerun), events.NewRetry(turn.TurnID, "WF", "t", nil), events.NewRetry(turn.TurnID, "WF2", "t", turn.Rerun),
	} {
		require.NotEqual(t, fingerprint, events.Fingerprint(other))
	}
}

func TestRetryThatNamesNoTurnOrNoCallIsRefused(t *testing.T) {
	t.Parallel()
	const ids = `"kind":"retry","chat_id":"c","turn_idempotency_key":"t~retry1",`
	for body, want := range map[string]string{
		`{` + ids + `"x":1}`:                                                             "resume_of is missing",
		`{` + ids + `"resume_of":"t~retry1"}`:                                            "a retry is a new turn",
		`{` + ids + `"resume_of":["t"]}`:                                                 "resume_of",
		`{` + ids + `"resume_of":"t","rerun":"1"}`:                                       "rerun",
		`{` + ids + `"resume_of":"t","rerun":[1]}`:                                       "not the id of a call",
		`{` + ids + `"resume_of":"t","rerun":["a b"]}`:                                   "not the id of a call",
		`{` + ids + `"resume_of":"t","rerun":["` + strings.Repeat("1", 257) + `"]}`:      "not the id of a call",
		`{` + ids + `"resume_of":"t","rerun":[` + strings.Repeat(`"1",`, 1000) + `"1"]}`: "at most 1000",
		`{` + ids + `"resume_of":"t","context":{"context_variables":1}}`:                 "context_variables",
		`{"kind":"retry","turn_idempotency_key":"x","resume_of":"t"}`:                    "chat_id is missing",
		`{"kind":"retry","chat_id":"x","resume_of":"t"}`:                                 "turn_idempotency_key is missing",
	} {
		_, err := events.DecodeTurn([]byte(body))
		require.ErrorIs(t, err, events.ErrBadArgs, body)
		require.ErrorContains(t, err, want, body)
	}
	_, err := events.WithRun([]byte(retryBody), "r2")
	require.ErrorContains(t, err, "belongs to the run")
}

func TestRetryThatCannotBeReadNamesItsTurn(t *testing.T) {
	t.Parallel()
	got, ok := events.Addressee([]byte(strings.Replace(retryBody, `"x":1`, `"x":1e999`, 1)), "")
	require.True(t, ok)
	require.Equal(t, "t~retry1", got.Turn)
	require.Equal(t, events.KindRetry, got.InboundKind())
	got, ok = events.Addressee([]byte(`{"resume_of":5,"rerun":1e999,"chat_id":"c","turn_idempotency_key":"t"}`), events.KindRetry)
	require.True(t, ok)
	require.Equal(t, events.KindRetry, got.InboundKind())
}

func TestKeyOfARetryIsTheSameHoweverOftenItIsMade(t *testing.T) {
	t.Parallel()
	for turn, want := range map[string]string{
		"t": "t~retry1", "t~retry1": "t~retry2", "t~retry9": "t~retry10", "t~retry": "t~retry~retry1", "t~retry01": "t~retry01~retry1", "~retry1": "~retry1~retry1",
		"t~retry1~retry1": "t~retry1~retry2", "t~retry99999999999999999999": "t~retry99999999999999999999~retry1", "t~retry-1": "t~retry-1~retry1",
	} {
		require.Equal(t, want, events.RetryKey(turn), turn)
	}
}
