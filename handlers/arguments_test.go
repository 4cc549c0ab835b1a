package handlers_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// TestToolAndEventGetTheSameArguments holds it for data that the model leaves as it is, and
// for data that it completes, bends and cuts: what was encoded for the fingerprint may then not
// be used.
func TestToolAndEventGetTheSameArguments(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","additionalProperties":false,"required":["n"],
		"properties":{"n":{"type":"integer"},"s":{"type":"string"},"d":{"type":"string","default":"x"}}}`
	for name, c := range map[string]struct{ schema, data, want string }{
		"as it is":  {schema, `{"s":"é","n":1,"d":""}`, `{"d":"","n":1,"s":"é"}`},
		"completed": {schema, `{"n":1}`, `{"d":"x","n":1}`},
		"bent":      {schema, `{"n":"1","d":"y"}`, `{"d":"y","n":1}`},
		"no rules":  {`{"type":"object"}`, `{"b":[{"z":1.50,"a":null}],"a":{}}`, `{"a":{},"b":[{"a":null,"z":1.50}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var call tools.Call
			k := newKit(t, toolFunc(func(_ context.Context, c *tools.Call) (tools.Result, error) {
				call = *c
				return tools.Result{}, nil
			}))
			set, err := bindings.Load(t.Context(), bindings.Options{Declared: []bindings.Declaration{
				{Workflow: "WF", Agent: "A", Model: "M", Tool: "t", Schema: json.RawMessage(c.schema)},
			}})
			require.NoError(t, err)
			k.Bindings = func() *bindings.Set { return set }
			m := k.message(1, 1)
			event, err := events.DecodeTurn(m.Data)
			require.NoError(t, err)
			event.Data, err = events.Decode([]byte(c.data))
			require.NoError(t, err)
			m.Data, err = events.EncodeTurn(event, time.Now())
			require.NoError(t, err)

			require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
			require.Equal(t, c.want, string(call.ArgsJSON))
			args, err := events.AppendJSON(nil, call.Args)
			require.NoError(t, err)
			require.Equal(t, c.want, string(args))
			record, err := k.store.Last(t.Context(), subjects.TurnKey("app", "chat", "", "turn").Public("tool_call"))
			require.NoError(t, err)
			body, err := events.Parse(record.Data)
			require.NoError(t, err)
			payload, ok := body.Data["payload"].(map[string]any)
			require.True(t, ok)
			require.Equal(t, call.Args, payload["tool_args"])
			require.Equal(t, events.Hex(events.Fingerprint(event)), record.Meta.Fingerprint)
		})
	}
}

func TestMissingDataOfATurnIsNamed(t *testing.T) {
	t.Parallel()
	for _, member := range []string{"", `"structured_data":null,`, `"data":{},`} {
		k := newKit(t, toolFunc(nothing))
		m := k.soon()
		m.Data = []byte(`{"kind":"structured_output_ready","agent":"A","model_name":"M",` + member + `"auto_tool_mode":true,` +
			`"turn_idempotency_key":"turn","context":{"app_id":"app","chat_id":"chat","workflow_name":"WF"}}`)
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
		r := k.response()
		require.Equal(t, events.CodeValidationFailed, r.Code)
		require.Equal(t, "structured_data is missing or null: it must be the output of agent A, an object.", r.Content)
	}
}

// TestDataThatIsNotAnObjectEndsTheTurn covers lists, numbers and texts, such as JSON that is cut.
func TestDataThatIsNotAnObjectEndsTheTurn(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`[1]`:       "array",
		`[]`:        "array",
		`1`:         "number",
		`"{\"x\":"`: "string",
		`"nope"`:    "string",
	} {
		k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
			require.Fail(t, "the tool is entered", data)
			return tools.Result{}, nil
		}))
		m := k.soon()
		m.Data = []byte(`{"kind":"structured_output_ready","agent":"A","model_name":"M","structured_data":` + data + `,"auto_tool_mode":true,` +
			`"turn_idempotency_key":"turn","context":{"app_id":"app","chat_id":"chat","workflow_name":"WF"}}`)
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do, data)
		r := k.response()
		require.Equal(t, events.CodeValidationFailed, r.Code, data)
		payload, ok := r.Payload.(map[string]any)
		require.True(t, ok, data)
		violations := []any{map[string]any{"path": "", "rule": "type", "expected": "object", "got_type": want}}
		require.Equal(t, violations, payload["errors"], data)
	}
}
