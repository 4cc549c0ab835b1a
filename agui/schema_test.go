package agui_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
)

// The schemas are the validators of the clients, see testdata/schema/README.md.
const (
	schema1   = "testdata/schema/agui-1.0.0.json"
	schemaOld = "testdata/schema/agui-0.0.59.json"
)

// schema compiles a part of a schema file.
func schema(t *testing.T, file, part string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("agui.json", bytes.NewReader(text)))
	s, err := c.Compile("agui.json#/" + part)
	require.NoError(t, err)
	return s
}

// decode returns JSON as the schema validator reads it.
func decode(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

func encode(t *testing.T, v json.Marshaler) []byte {
	t.Helper()
	b, err := v.MarshalJSON()
	require.NoError(t, err)
	return b
}

func TestEveryEventMatchesTheSchemaOfClients(t *testing.T) {
	t.Parallel()
	s := schema(t, schema1, "$defs/Event")
	for _, e := range samples() {
		b := encode(t, e)
		require.True(t, strings.HasPrefix(string(b), `{"type":"`+string(e.Type())+`"`), "%s", b)
		require.NoError(t, s.Validate(decode(t, b)), "%s", b)
	}
}

func TestEveryEventOfTheProtocolHasAStruct(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(schema1)
	require.NoError(t, err)
	var file struct {
		Defs struct {
			Event struct {
				OneOf []struct {
					Properties map[string]struct {
						Const agui.EventType `json:"const"`
					} `json:"properties"`
				} `json:"oneOf"`
			} `json:"Event"`
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(text, &file))
	require.Len(t, file.Defs.Event.OneOf, 31)
	// All members of an event are in the JSON of one of its samples.
	members := map[agui.EventType]map[string]bool{}
	for _, e := range samples() {
		if members[e.Type()] == nil {
			members[e.Type()] = map[string]bool{}
		}
		var object map[string]any
		require.NoError(t, json.Unmarshal(encode(t, e), &object))
		for name := range object {
			members[e.Type()][name] = true
		}
	}
	for _, event := range file.Defs.Event.OneOf {
		eventType := event.Properties["type"].Const
		for name := range event.Properties {
			if eventType == agui.TypeToolCallResult && name == "role" {
				continue // a constant that is optional
			}
			require.True(t, members[eventType][name], "%s has no %s", eventType, name)
		}
	}
}

func TestSamplesSetEveryField(t *testing.T) {
	t.Parallel()
	unset := map[string]bool{}
	set := map[string]bool{}
	for _, e := range samples() {
		v := reflect.ValueOf(e).Elem()
		for field, value := range v.Fields() {
			name := v.Type().Name() + "." + field.Name
			unset[name] = true
			set[name] = set[name] || !value.IsZero()
		}
	}
	for name := range unset {
		require.True(t, set[name], name)
	}
}

func TestSchemaOfClientsRefusesWhatTheProtocolForbids(t *testing.T) {
	t.Parallel()
	s := schema(t, schema1, "$defs/Event")
	for _, bad := range []string{
		`{"type":"CUSTOM","name":"x"}`,
		`{"type":"RUN_STARTED","threadId":"t"}`,
		`{"type":"RUN_STARTED","threadId":"t","runId":"r","parentRunId":null}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":null}`,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[]}}`,
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a"}]}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m","role":"tool"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":1.5}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m","unknown":1}`,
		`{"type":"THINKING_START"}`,
	} {
		require.Error(t, s.Validate(decode(t, []byte(bad))), bad)
	}
}

func TestDowngradedEventsMatchTheSchemaOfOldClients(t *testing.T) {
	t.Parallel()
	s := schema(t, schemaOld, "definitions/Event")
	refused := 0
	for _, e := range samples() {
		if s.Validate(decode(t, encode(t, e))) != nil {
			refused++
		}
		if down := agui.Downgrade(e, agui.Peer{}); down != nil {
			b := encode(t, down)
			require.NoError(t, s.Validate(decode(t, b)), "%s", b)
		}
	}
	require.Positive(t, refused, "the samples have something that old clients reject")
}

func TestInputsMatchTheSchemaOfClients(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(fullInput())
	require.NoError(t, err)
	require.NoError(t, schema(t, schema1, "$defs/RunAgentInput").Validate(decode(t, b)))
	read, err := agui.ReadInput(bytes.NewReader(b), agui.InputLimits{})
	require.NoError(t, err)
	again, err := json.Marshal(read)
	require.NoError(t, err)
	require.JSONEq(t, string(b), string(again))
}

func TestCapabilitiesMatchTheSchemaOfClients(t *testing.T) {
	t.Parallel()
	full := agui.Capabilities{Custom: map[string]any{"a": 1}}
	fill(reflect.ValueOf(&full).Elem())
	b, err := json.Marshal(full)
	require.NoError(t, err)
	require.NoError(t, schema(t, schema1, "$defs/AgentCapabilities").Validate(decode(t, b)), "%s", b)
	b, err = json.Marshal(agui.Capabilities{})
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(b))
}

// fill sets every field of a struct.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, value := range v.Fields() {
			fill(value)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(false)
	case reflect.Int64:
		v.SetInt(1)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]any{"k": "v"}))
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	default:
		panic(v.Kind())
	}
}
