package events_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func TestCanonicalDataComesWithItsFingerprint(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{ "b" : [1.0, {"é": null}], "a":"\u0041\n" }`, `{}`, `null`, `[]`, `"x"`, `-0`, nest(events.MaxDataDepth)} {
		for _, room := range []int{0, 1, 4096} {
			turn := &events.StructuredOutputReady{Workflow: `W"`, Agent: "A", Data: mustDecode(t, data)}
			canonical, fingerprint := events.CanonicalData(turn, room)
			require.Equal(t, mustAppend(t, turn.Data), string(canonical), data)
			whole := mustAppend(t, []any{turn.Workflow, turn.Agent, turn.Model, turn.Data})
			require.Equal(t, sha256.Sum256([]byte(whole)), fingerprint, data)
			require.Equal(t, fingerprint, events.Fingerprint(turn), data)
			require.Equal(t, hex.EncodeToString(fingerprint[:]), events.Hex(fingerprint))
		}
	}
	for _, no := range []any{1.5, nested(events.MaxDataDepth + 1), "\xff"} {
		canonical, fingerprint := events.CanonicalData(&events.StructuredOutputReady{Data: no}, 0)
		require.Nil(t, canonical)
		require.Zero(t, fingerprint)
	}
}

// TestDataThatCameCanonicalIsReturnedLikeAnyOther compares what is taken from the message with what is
// encoded again: only canonical bytes, and only the bytes of the data.
func TestDataThatCameCanonicalIsReturnedLikeAnyOther(t *testing.T) {
	t.Parallel()
	const rest = `"auto_tool_mode":true,"chat_id":"c","turn_idempotency_key":"t"`
	data := []string{
		`{}`, `[]`, `null`, `{"":1,"a":-0.0,"b":[1,[2]],"ä":"é"}`, `"\"\\\b\f\n\r\t\u0000\u001f/"`, nest(events.MaxDataDepth),
		`{ "a":1}`, ` {"a":1}`, `{"a":1} `, `{"b":1,"a":1}`, `[{"b":1,"a":1}]`, `[1, 2]`,
		`"\/"`, `"\u0041"`, `"\u000a"`, `"\u001F"`, `"\u0022"`, `"\ud83d\ude00"`, `{"\u0061":1}`,
	}
	for _, d := range data {
		for _, body := range []string{
			`{"structured_data":` + d + `,` + rest + `}`,
			`{` + rest + `,"structured_data":` + d + `}`,
			`{"a":{"structured_data":1},"data":{"structured_data":2},"structured_data":` + d + `,` + rest + `,"z":{"structured_data":3}}`,
			`{"type":"chat.structured_output_ready","data":{"structured_data":` + d + `,` + rest + `}}`,
			`{"a":{"structured_data":1},"data":{"data":{"structured_data":2},"structured_data":` + d + `,"x":{"structured_data":3},` + rest +
				`},"type":"chat.structured_output_ready","structured_data":4,"x":{"structured_data":5}}`,
		} {
			requireCanonicalData(t, body)
		}
	}
	// Without a type, data is a member like any other.
	requireCanonicalData(t, `{"data":{"structured_data":{"a":1}},`+rest+`}`)
	requireCanonicalData(t, `{"data":[{"structured_data":{"a":1}}],"structured_data":{ },`+rest+`}`)
}

func requireCanonicalData(t *testing.T, body string) {
	t.Helper()
	m, err := events.Parse([]byte(body))
	require.NoError(t, err, body)
	read := map[string]func() (*events.StructuredOutputReady, error){events.KindPlanReady: m.PlanReady, events.KindRetry: m.Retry}[m.Kind]
	if read == nil {
		read = m.Turn
	}
	turn, err := read()
	require.NoError(t, err, body)
	data, fingerprint := m.CanonicalData(turn)
	wantData, want := events.CanonicalData(turn, 0)
	require.Equal(t, string(wantData), string(data), body)
	require.Equal(t, want, fingerprint, body)
}

// TestEventIsTheSameWhetherItsArgumentsWereEncodedBeforeOrNot also holds that what was encoded
// before is nested no deeper than an event can be read back.
func TestEventIsTheSameWhetherItsArgumentsWereEncodedBeforeOrNot(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{`{}`, `{"b":1.50,"a":[{"x":"é\"\\"}]}`, `{"deep":` + nest(events.MaxDataDepth-1) + `}`} {
		tree := mustDecode(t, doc)
		args, err := events.Canonicalize(tree, 8)
		require.NoError(t, err)
		call := sampleCall()
		call.Payload.ToolArgs = tree
		want, err := events.Encode(events.KindToolCall, call, noon)
		require.NoError(t, err)
		call.Payload.ToolArgs = args
		got, err := events.Encode(events.KindToolCall, *call, noon)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		_, err = events.Parse(got)
		require.NoError(t, err)
		require.Equal(t, mustAppend(t, tree), mustAppend(t, args))
		marshalled, err := json.Marshal(map[string]any{"args": args})
		require.NoError(t, err)
		require.JSONEq(t, `{"args":`+doc+`}`, string(marshalled))
	}
	require.Equal(t, "[null]", mustAppend(t, []any{events.Canonical(nil)}))
}

func TestCanonicalFitsIntoEveryEvent(t *testing.T) {
	t.Parallel()
	_, err := events.Canonicalize(nested(events.MaxDataDepth+1), 0)
	require.ErrorIs(t, err, events.ErrTooLarge)
	_, err = events.Canonicalize(map[string]any{"x": 1.5}, 0)
	require.ErrorIs(t, err, events.ErrBadArgs)
	var inside any = events.Canonical(nest(events.MaxDataDepth))
	for range events.MaxDepth - events.MaxDataDepth {
		inside = []any{inside}
	}
	_, err = events.Decode([]byte(mustAppend(t, inside)))
	require.NoError(t, err)
	_, err = events.AppendJSON(nil, []any{inside})
	require.ErrorIs(t, err, events.ErrTooLarge)
}

func TestObjectsOfEverySizeKeepTheirMembersAndFindTheirDuplicates(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 8, 9, 23, 24, 25, 100} {
		members := make([]string, size)
		want := map[string]any{}
		for i := range size {
			members[i] = fmt.Sprintf(`"k%d":{"v":%d}`, i, i)
			want[fmt.Sprintf("k%d", i)] = map[string]any{"v": number(strconv.Itoa(i))}
		}
		doc := "{" + strings.Join(members, ",")
		require.Equal(t, want, mustDecode(t, doc+"}"))
		_, err := events.Decode([]byte(doc + `,"k0":1,"k0":2}`))
		var syntax *events.SyntaxError
		require.ErrorAs(t, err, &syntax)
		require.Equal(t, int64(len(doc)+1), syntax.Offset)
		require.Equal(t, "/k0", syntax.Pointer)
	}
}
