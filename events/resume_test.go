package events_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func TestResumeReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, want := range []events.Resume{
		{TurnID: events.TurnID{App: "a", Chat: "c", Run: "r", Turn: "t"}, Workflow: "W"},
		{TurnID: events.TurnID{App: "a", Chat: "c", Turn: "t"}, Workflow: "W", Key: "a.c.f0-0-t.0"},
		{TurnID: events.TurnID{App: events.DefaultApp}, Key: "==x.==y.==z.0"},
	} {
		body, err := events.EncodeResume(&want, noon)
		require.NoError(t, err)
		got, err := events.DecodeResume(body)
		require.NoError(t, err)
		require.Equal(t, want, *got)
		_, err = events.DecodeCancel(body)
		require.ErrorIs(t, err, events.ErrBadArgs)
	}
}

func TestResumeThatNamesNoTurnIsRefused(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`{}`, `{"chat_id":"c"}`, `{"turn":"t"}`, `{"key":5}`, `{"key":["a"]}`, `{"key":"` + strings.Repeat("k", 1025) + `"}`,
		`{"chat_id":"c","turn":"t","context":[]}`, `{"kind":"cancel","chat_id":"c","turn":"t"}`, `{"chat_id":"c\u0000","turn":"t"}`, `[]`,
	} {
		_, err := events.DecodeResume([]byte(doc))
		require.ErrorIs(t, err, events.ErrBadArgs, doc)
	}
	var missing *events.MissingFieldError
	_, err := events.DecodeResume([]byte(`{"turn":"t"}`))
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "chat_id", missing.Field)
	_, err = events.EncodeResume(&events.Resume{}, noon)
	require.ErrorIs(t, err, events.ErrBadArgs)
}

func TestWithRunChangesTheRunAndNothingElse(t *testing.T) {
	t.Parallel()
	const data = `{"auto_tool_mode":true,"chat_id":"c","structured_data":{"n":1.50,"run_id":"mine"},"turn_idempotency_key":"t"%s}`
	for _, body := range []string{
		strings.Replace(data, "%s", "", 1),
		strings.Replace(data, "%s", `,"run_id":"old"`, 1),
		strings.Replace(data, "%s", `,"context":{"run_id":"old"}`, 1),
		strings.Replace(data, "%s", `,"kind":"plan_ready","plan":{"b":1,"a":[]}`, 1),
		`{"type":"chat.structured_output_ready","data":` + strings.Replace(data, "%s", `,"kind":"structured_output_ready"`, 1) + `}`,
	} {
		changed, err := events.WithRun([]byte(body), "new")
		require.NoError(t, err)
		require.Contains(t, string(changed), `{"n":1.50,"run_id":"mine"}`)
		before, err := events.DecodeTurn([]byte(body))
		require.NoError(t, err)
		after, err := events.DecodeTurn(changed)
		require.NoError(t, err)
		require.Equal(t, "new", after.Run)
		require.Equal(t, events.Fingerprint(before), events.Fingerprint(after))
		after.Run = before.Run
		require.Equal(t, before, after)
	}
	for body, run := range map[string]string{
		`{"kind":"cancel","chat_id":"c","turn":"t"}`: "new", `{`: "new", `{}`: "", `[]`: "new", `{"chat_id":"c"}`: "a\nb",
	} {
		_, err := events.WithRun([]byte(body), run)
		require.ErrorIs(t, err, events.ErrBadArgs, body)
	}
}

func TestResumesThatTheSchemaTakesAreThoseThatDecode(t *testing.T) {
	t.Parallel()
	schema := compile(t, events.KindResume)
	for doc, fits := range map[string]bool{
		`{"chat_id":"c","turn":"t"}`: true, `{"context":{"chat_id":7},"turn_idempotency_key":"t"}`: true, `{"key":"a.c.t.0"}`: true,
		`{"chat_id":"c"}`: false, `{"turn":"t"}`: false, `{"key":""}`: false, `{"key":7}`: false, `{"kind":"cancel","key":"k"}`: false,
	} {
		_, err := events.DecodeResume([]byte(doc))
		require.Equal(t, fits, err == nil, doc)
		require.Equal(t, fits, schema.Validate(mustDecode(t, doc)) == nil, doc)
	}
	require.True(t, json.Valid(must(events.Schema(events.KindResume))))
}

func must(raw json.RawMessage, ok bool) json.RawMessage {
	if !ok {
		return nil
	}
	return raw
}
