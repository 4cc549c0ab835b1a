package events_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/events"
)

func sampleCall() *events.ToolCall {
	component := "GreetCard"
	return &events.ToolCall{
		ID: "turn-1", AppID: "app", ChatID: "c", RunID: "r", Turn: "turn-1", TurnSequence: 3, Agent: "A",
		ToolName: "greet", ToolCallID: "turn-1", CallID: "turn-1", Corr: "turn-1", ComponentType: &component,
		Display: "inline", DisplayType: "inline", InteractionType: events.InteractionAutoTool, WorkflowName: "W",
		Payload: events.ToolCallPayload{
			ToolArgs: map[string]any{"name": "Al <&>", "n": number("1.0")}, AgentName: "A",
			InteractionType: events.InteractionAutoTool, WorkflowName: "W", AgentMessage: "hi",
		},
	}
}

func sampleResponse() *events.ToolResponse {
	return &events.ToolResponse{
		ID: "turn-1", AppID: "app", ChatID: "c", Turn: "turn-1", Agent: "A", ToolName: "greet", ToolCallID: "turn-1",
		CallID: "turn-1", Corr: "turn-1", Status: events.StatusOK, Success: true, Content: "done",
		InteractionType: events.InteractionAutoTool, WorkflowName: "W", Payload: json.RawMessage(`{ "b":1, "a":2 }`),
		Attempts: 1, DurationMS: 12, ContextKeys: []string{"x"},
	}
}

func encode(tb testing.TB, kind string, data any) string {
	tb.Helper()
	b, err := events.Encode(kind, data, noon)
	require.NoError(tb, err)
	return string(b)
}

func TestEnvelopeIsTypeThenDataThenUTCTimestampWithMilliseconds(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("x", 3600)
	b, err := events.Encode("turn_conflict", map[string]any{"b": "<&>", "a": nil, "kind": "else"}, noon.In(zone))
	require.NoError(t, err)
	want := `{"type":"chat.turn_conflict","data":{"a":null,"b":"<&>","kind":"turn_conflict"},"timestamp":"2026-01-02T12:00:00.007Z"}`
	require.Equal(t, want, string(b), "also the order counts")
}

func TestEncodeLeavesTheDataItWasGivenAlone(t *testing.T) {
	t.Parallel()
	data := map[string]any{"a": "b"}
	encode(t, "x", data)
	require.Equal(t, map[string]any{"a": "b"}, data)
}

// fill sets every settable field of a struct to something that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(noon.Add(250 * time.Millisecond)))
			return
		}
		for field, value := range v.Fields() {
			if field.Tag.Get("json") != "-" {
				fill(value)
			}
		}
	case reflect.String:
		v.SetString("some \"text\" <é>\u2028\n")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MaxInt64)
	case reflect.Float64:
		v.SetFloat(1.0 / 3)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"z":1.0,"a":[null,true]}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{"z": json.Number("1.0"), "a": []any{nil, true}}))
	default:
		panic("fill: add " + v.Kind().String())
	}
}

func TestEncodeWritesEveryFieldThatTheStructTagsPromise(t *testing.T) {
	t.Parallel()
	for _, event := range []any{
		&events.ToolCall{}, &events.ToolResponse{}, &events.TurnConflict{}, &events.ToolCallCancel{},
		&events.ToolCallAck{}, &events.ToolCallDismiss{}, &events.ToolProgress{}, &events.ToolCallRejected{}, &events.RunComplete{},
		&events.UIToolComplete{}, &events.UIToolDismiss{}, &events.PlanStarted{}, &events.PlanFinished{},
	} {
		for _, filled := range []bool{false, true} {
			v := reflect.ValueOf(event)
			if filled {
				fill(v.Elem())
			}
			v.Elem().FieldByName("Kind").SetString("k")
			want, err := json.Marshal(event)
			require.NoError(t, err)
			for _, data := range []any{event, v.Elem().Interface()} {
				got, ok := mustDecode(t, encode(t, "k", data)).(map[string]any)
				require.True(t, ok)
				require.Equal(t, mustDecode(t, string(want)), got["data"], "%T filled=%v", event, filled)
			}
		}
	}
}

func TestPayloadMayBeTreeRawJSONBlobOrValidationFailure(t *testing.T) {
	t.Parallel()
	type problem struct {
		Path string `json:"path"`
	}
	blob := events.Blob{Blob: "b1", SHA256: strings.Repeat("0", 64), Size: 300_000}
	blobJSON := `{"$blob":"b1","sha256":"` + blob.SHA256 + `","size":300000}`
	for _, c := range []struct {
		payload any
		want    string
	}{
		{nil, `null`},
		{json.RawMessage(nil), `null`},
		{json.RawMessage(` { "b" : 1.0 } `), `{"b":1.0}`},
		{"text", `"text"`},
		{[]any{number("1")}, `[1]`},
		{blob, blobJSON},
		{&blob, blobJSON},
		{events.ValidationFailure{Errors: []problem{{Path: "/a"}}, Feedback: "<a>"}, `{"errors":[{"path":"/a"}],"feedback":"<a>"}`},
	} {
		response := sampleResponse()
		response.Payload = c.payload
		require.Contains(t, encode(t, events.KindToolResponse, response), `"payload":`+c.want+`,`)
		call := sampleCall()
		call.Payload.ToolArgs = c.payload
		require.Contains(t, encode(t, events.KindToolCall, call), `"tool_args":`+c.want+`,`)
	}
}

func TestEncodeRefusesWhatNoReaderWouldAccept(t *testing.T) {
	t.Parallel()
	response := func(change func(*events.ToolResponse)) *events.ToolResponse {
		r := sampleResponse()
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		data any
		want error
	}{
		"invalid UTF-8": {response(func(r *events.ToolResponse) { r.Content = "\xff" }), events.ErrBadArgs},
		"float payload": {response(func(r *events.ToolResponse) { r.Payload = 1.5 }), events.ErrBadArgs},
		"broken result": {response(func(r *events.ToolResponse) { r.Payload = json.RawMessage(`NaN`) }), events.ErrBadArgs},
		"deep result":   {response(func(r *events.ToolResponse) { r.Payload = nested(63) }), events.ErrTooLarge},
		"deep raw":      {response(func(r *events.ToolResponse) { r.Payload = json.RawMessage(nest(63)) }), events.ErrTooLarge},
		"no object":     {[]any{}, events.ErrBadArgs},
		"no JSON":       {make(chan int), events.ErrBadArgs},
		"nil":           {nil, events.ErrBadArgs},
		"nil blob":      {response(func(r *events.ToolResponse) { r.Payload = (*events.Blob)(nil) }), events.ErrBadArgs},
		"float in data": {map[string]any{"a": 1.5}, events.ErrBadArgs},
	} {
		b, err := events.Encode("k", c.data, noon)
		require.ErrorIs(t, err, c.want, name)
		require.Nil(t, b, name)
	}
	deepest := response(func(r *events.ToolResponse) { r.Payload = nested(62) })
	mustDecode(t, encode(t, events.KindToolResponse, deepest))
}

func TestEventsRoundTripThroughTheirTypes(t *testing.T) {
	t.Parallel()
	want := sampleResponse()
	want.Kind = events.KindToolResponse
	want.Payload = map[string]any{"b": number("1"), "a": number("2")}
	m, err := events.Parse([]byte(encode(t, events.KindToolResponse, want)))
	require.NoError(t, err)
	require.Equal(t, events.KindToolResponse, m.Kind)
	require.Equal(t, noon, m.Timestamp)
	var got events.ToolResponse
	require.NoError(t, m.As(&got))
	require.Equal(t, want, &got)

	require.ErrorIs(t, m.As(&struct {
		Status int `json:"status"`
	}{}), events.ErrBadArgs)
}

func TestEncodedTurnsDecodeToThemselves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[a-zA-Z0-9 .*>:é"\\]{1,20}`)
		maybe := rapid.OneOf(rapid.Just(""), id)
		want := &events.StructuredOutputReady{
			TurnID:       events.TurnID{App: id.Draw(t, "app"), Chat: id.Draw(t, "chat"), Run: maybe.Draw(t, "run"), Turn: id.Draw(t, "turn")},
			Workflow:     maybe.Draw(t, "workflow"),
			Agent:        maybe.Draw(t, "agent"),
			Model:        maybe.Draw(t, "model"),
			Data:         tree(3).Draw(t, "data"),
			AutoToolMode: true,
			UserID:       maybe.Draw(t, "user"),
			TurnSequence: rapid.Int64().Draw(t, "sequence"),
			CorrectionOf: maybe.Draw(t, "correction"),
			Timestamp:    noon,
		}
		if rapid.Bool().Draw(t, "has variables") {
			want.ContextVariables = map[string]any{"x": tree(2).Draw(t, "variable")}
		}
		body, err := events.EncodeTurn(want, noon)
		require.NoError(t, err)
		got, err := events.DecodeTurn(body)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// tree draws value trees with at most depth levels of containers.
func tree(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.String().AsAny(),
		rapid.Custom(func(t *rapid.T) json.Number {
			return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number"))
		}).AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	inner := tree(depth - 1)
	lists, objects := rapid.SliceOfN(inner, 0, 4), rapid.MapOfN(rapid.String(), inner, 0, 4)
	return rapid.OneOf(rapid.OneOf(leaves...), lists.AsAny(), objects.AsAny())
}

func TestEncodeTurnAndCancelRefuseWhatTheirReadersRefuse(t *testing.T) {
	t.Parallel()
	turn := events.TurnID{Chat: "c", Turn: "t"}
	for field, id := range map[string]events.TurnID{"chat_id": {Turn: "t"}, "turn": {Chat: "c"}} {
		var missing *events.MissingFieldError
		_, err := events.EncodeTurn(&events.StructuredOutputReady{TurnID: id, AutoToolMode: true}, noon)
		require.ErrorAs(t, err, &missing)
		require.Contains(t, missing.Field, field)
		_, err = events.EncodeCancel(&events.Cancel{TurnID: id}, noon)
		require.ErrorAs(t, err, &missing)
		require.Equal(t, field, missing.Field)
	}
	_, err := events.EncodeTurn(&events.StructuredOutputReady{TurnID: turn, AutoToolMode: true, Agent: "a\x00"}, noon)
	require.ErrorContains(t, err, "agent_name has a control character")
	_, err = events.EncodeTurn(&events.StructuredOutputReady{TurnID: turn, AutoToolMode: true, Data: 1}, noon)
	require.ErrorIs(t, err, events.ErrBadArgs)
	_, err = events.EncodeTurn(&events.StructuredOutputReady{TurnID: turn, AutoToolMode: true, Data: nested(events.MaxDataDepth + 1)}, noon)
	require.ErrorContains(t, err, "structured_data is nested more than 56 deep")
}
