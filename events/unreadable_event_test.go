package events_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

const addressed = `{"type":"chat.structured_output_ready","data":{"agent":"A","model_name":"M","structured_data":%s,"auto_tool_mode":true,` +
	`"turn_idempotency_key":"t","run_id":7,"context":{"chat_id":"c","enterprise_id":"e","workflow_name":"W"%s}},"timestamp":%s}`

func TestAddresseeOfATurnThatCannotBeDecodedIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ data, more, stamp string }{
		{`{"x":NaN}`, "", "null"},
		{`{"x":[1,-Infinity,Infinity]}`, "", "null"},
		{`{"x":"cut \ud83d"}`, "", "null"},
		{"{\"x\":\"\xff\"}", "", "null"},
		{"{\"x\":\"a\nb\"}", "", "null"},
		{`{"x":"\q"}`, "", "null"},
		{`{"\ud83d":1}`, "", "null"},
		{`{"x":1e999}`, "", "null"},
		{`{"x":007}`, "", "null"},
		{`{"x":` + strings.Repeat("9", 100) + `}`, "", "null"},
		{`{"x":1,"x":2}`, "", "null"},
		{`{"x":undefined,"y":None,"z":True}`, "", "null"},
		{strings.Repeat("[", 60) + strings.Repeat("]", 60), "", "null"},
		{strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "", "null"},
		{"[" + strings.Repeat("1,", events.MaxNodes) + "[1]]", "", "null"},
		{`{}`, `,"context_variables":7`, "null"},
		{`{}`, `,"turn_sequence":"three"`, "null"},
		{`{}`, "", `"today"`},
		{`{}`, "", `true`},
	} {
		body := []byte(fmt.Sprintf(addressed, c.data, c.more, c.stamp))
		_, err := events.DecodeTurn(body)
		require.Error(t, err, "%.100s", body)
		got, ok := events.Addressee(body, events.KindStructuredOutputReady)
		require.True(t, ok, "%.300s", body)
		require.Equal(t, events.TurnID{App: "e", Chat: "c", Run: "7", Turn: "t"}, got.TurnID)
		require.Equal(t, "W", got.Workflow)
		require.Equal(t, "A", got.Agent)
		require.Equal(t, "M", got.Model)
		again, _ := events.Addressee(body, events.KindStructuredOutputReady)
		require.Equal(t, events.Fingerprint(got), events.Fingerprint(again))
	}
}

func TestAddresseeOfAPlanThatCannotBeDecodedIsRead(t *testing.T) {
	t.Parallel()
	const ids = `"agent":"A","model_name":"M","turn_idempotency_key":"t","context":{"chat_id":"c","workflow_name":"W"},"plan":{"x":NaN}}`
	for body, kind := range map[string]string{
		`{"kind":"plan_ready",` + ids:                                events.KindStructuredOutputReady,
		`{"type":"chat.plan_ready","data":{"user_id":1,` + ids + `}`: "",
		`{` + ids: events.KindPlanReady,
	} {
		got, ok := events.Addressee([]byte(body), kind)
		require.True(t, ok, body)
		require.True(t, got.Plan)
		require.Equal(t, events.TurnID{App: "default", Chat: "c", Turn: "t"}, got.TurnID)
		require.Equal(t, []string{"W", "A", events.ModelPlan}, []string{got.Workflow, got.Agent, got.Model})
	}
	_, ok := events.Addressee([]byte(`{`+ids), events.KindStructuredOutputReady)
	require.False(t, ok, "auto_tool_mode is not true")
	_, ok = events.Addressee([]byte(`{"kind":"cancel",`+ids), events.KindPlanReady)
	require.False(t, ok)
}

func TestAddresseeIsNoneWhereTheIdentityIsInDoubt(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"auto_tool_mode":true,"turn_idempotency_key":"t","structured_data":NaN}`,
		`{"auto_tool_mode":true,"turn_idempotency_key":"t","chat_id":NaN}`,
		`{"auto_tool_mode":true,"turn_idempotency_key":"t","chat_id":"cut \ud83d"}`,
		`{"auto_tool_mode":true,"turn_idempotency_key":"t","chat_id":"c","chat_id":"d"}`,
		`{"auto_tool_mode":true,"turn_idempotency_key":"t","chat_id":"c","app_id":NaN}`,
		`{"auto_tool_mode":true,"turn_idempotency_key":"t","chat_id":"c","run_id":{},"x":NaN}`,
		`{"auto_tool_mode":true,"turn_idempotency_key":"t","chat_id":"c","context":{},"context":{"chat_id":"d"}}x`,
		`{"auto_tool_mode":"true","turn_idempotency_key":"t","chat_id":"c","x":NaN}`,
		`{"turn_idempotency_key":"t","chat_id":"c","x":NaN}`,
		`{"kind":"cancel","auto_tool_mode":true,"turn_idempotency_key":"t","chat_id":"c","x":NaN}`,
		`{"auto_tool_mode":true,"turn_idempotency_key":"t","chat_id":"c","x":NaN`,
		`{"auto_tool_mode":true,"turn_idempotency_key":"t","chat_id":"c","x":"open`,
		`{"auto_tool_mode":true,"turn_idempotency_key":"t","chat_id":"c" "x":1}`,
		`[NaN]`, `NaN`, ``, `{`,
	} {
		_, ok := events.Addressee([]byte(body), events.KindStructuredOutputReady)
		require.False(t, ok, body)
	}
}

func TestTimesAreReadAsProgramsWriteThem(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for stamp, want := range map[string]time.Time{
		`"2026-11-28T12:00:00Z"`:          noon,
		`"2026-11-28 12:00:00"`:           noon,
		`"2026-11-28 12:00:00.5"`:         noon.Add(time.Second / 2),
		`"2026-11-28 13:00:00+01:00"`:     noon,
		`"2026-11-28 13:00:00.000 +0100"`: noon,
		`"2026-11-28T13:00:00+0100"`:      noon,
		`"2026-11-28 12:00:00Z"`:          noon,
		`"2026-11-28 12:00:00 UTC"`:       noon,
		`" 2026-11-28T12:00:00 "`:         noon,
		`"2026-11-28T12:00"`:              noon,
		`"20261128T120000Z"`:              noon,
		`"2026-11-28"`:                    noon.Add(-12 * time.Hour),
		`"Sat, 28 Nov 2026 12:00:00 GMT"`: noon,
		`1795867200`:                      noon,
		`1795867200.25`:                   noon.Add(time.Second / 4),
		`"1795867200"`:                    noon,
		`1795867200000`:                   noon,
		`1795867200000000`:                noon,
		`1795867200000000000`:             noon,
		`null`:                            {},
	} {
		got, err := events.DecodeTurn([]byte(fmt.Sprintf(addressed, "{}", "", stamp)))
		require.NoError(t, err, stamp)
		require.WithinDuration(t, want, got.Timestamp, time.Millisecond, stamp)
	}
	for sequence, want := range map[string]int64{`3`: 3, `"3"`: 3, `3.0`: 3, `" 3 "`: 3, `-1`: -1, `null`: 0} {
		got, err := events.DecodeTurn([]byte(fmt.Sprintf(addressed, "{}", `,"turn_sequence":`+sequence, "null")))
		require.NoError(t, err, sequence)
		require.Equal(t, want, got.TurnSequence, sequence)
	}
}

func FuzzAddressee(f *testing.F) {
	for _, data := range []string{`{"x":NaN}`, `"\ud83d"`, `[[[[1e999`, `{"a":1,"a":2}`} {
		f.Add([]byte(fmt.Sprintf(addressed, data, "", "null")))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := events.Addressee(body, events.KindStructuredOutputReady)
		strict, err := events.DecodeTurn(body)
		if err == nil && ok {
			require.Equal(t, strict.TurnID, got.TurnID, "both read one identity")
		}
		if ok {
			require.NotEmpty(t, got.Chat)
			require.NotEmpty(t, got.Turn)
			require.NotZero(t, events.Fingerprint(got))
		}
	})
}
