package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type order struct {
	Item  string `json:"item"`
	Count int    `json:"count,omitempty" jsonschema:"how many"`
	Extra any    `json:"extra,omitempty"`
}

func call(args map[string]any) *tools.Call { return &tools.Call{Name: "order", Args: args} }

func TestFuncDecodesArgumentsAndEncodesTheResult(t *testing.T) {
	t.Parallel()
	tool := tools.Func(func(_ context.Context, in order) (order, error) {
		in.Count++
		return in, nil
	})
	result, err := tool.Invoke(t.Context(), call(map[string]any{
		"item": "tea", "count": json.Number("2"), "extra": json.Number("12345678901234567890"), "other": true,
	}))
	require.NoError(t, err)
	require.JSONEq(t, `{"item":"tea","count":3,"extra":12345678901234567890}`, string(result.Value))
	require.Nil(t, result.Set)
}

func TestFuncGivesAMapTheArgumentsAsTheyAre(t *testing.T) {
	t.Parallel()
	args := map[string]any{"n": json.Number("1.50")}
	tool := tools.Func(func(_ context.Context, in map[string]any) (any, error) {
		in["added"] = true
		return in["n"], nil
	})
	result, err := tool.Invoke(t.Context(), call(args))
	require.NoError(t, err)
	require.Equal(t, "1.50", string(result.Value))
	require.NotContains(t, args, "added")
}

func TestFuncDecodesArgumentsThatWereEncodedBefore(t *testing.T) {
	t.Parallel()
	type in struct{ N int }
	var got in
	tool := tools.Func(func(_ context.Context, in in) (any, error) { got = in; return nil, nil }) //nolint:nilnil // no result
	call := &tools.Call{Args: map[string]any{"N": json.Number("1")}, ArgsJSON: json.RawMessage(`{"N":2}`)}
	_, err := tool.Invoke(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, 2, got.N)
	for want, call := range map[string]*tools.Call{
		`{"N":2}`:       call,
		`{"N":1}`:       {Args: call.Args},
		`{}`:            {},
		`{"a":1,"b":2}`: {Args: map[string]any{"b": json.Number("2"), "a": json.Number("1")}},
	} {
		data, err := call.EncodedArgs()
		require.NoError(t, err)
		require.Equal(t, want, string(data))
	}
}

func TestFuncReportsWhyItFailed(t *testing.T) {
	t.Parallel()
	own := errors.New("no stock")
	cases := []struct {
		name string
		args map[string]any
		fn   func(context.Context, order) (any, error)
		code events.Code
		want string
	}{
		{"arguments of another type", map[string]any{"item": json.Number("5")}, nil, events.CodeBadArgs, "item"},
		{"arguments without JSON form", map[string]any{"item": func() {}}, nil, events.CodeBadArgs, "do not fit"},
		{"panic", nil, func(context.Context, order) (any, error) { panic("boom") }, events.CodeToolError, "panic: boom"},
		{"nil dereference", nil, func(_ context.Context, _ order) (any, error) {
			var o *order
			return o.Count, nil
		}, events.CodeToolError, "panic: runtime error: invalid memory address"},
		{"result without JSON form", nil, func(context.Context, order) (any, error) { return math.NaN(), nil }, events.CodeToolError, "no JSON form"},
		{"own error", nil, func(context.Context, order) (any, error) { return nil, own }, "", "no stock"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := tools.Func(c.fn).Invoke(t.Context(), call(c.args))
			require.ErrorContains(t, err, c.want)
			require.Equal(t, c.code, events.CodeOf(err))
			require.NotContains(t, err.Error(), "goroutine")
			var p *tools.PanicError
			if errors.As(err, &p) {
				require.Contains(t, string(p.Stack), "func_test.go")
			}
		})
	}
}

func TestCallAndVariablesTravelInTheContext(t *testing.T) {
	t.Parallel()
	c := call(map[string]any{})
	c.IdempotencyKey = "key"
	c.Context = map[string]any{"same": json.Number("1"), "old": "x", "list": []any{"a"}}
	tool := tools.Func(func(ctx context.Context, _ order) ([]string, error) {
		require.Equal(t, "key", tools.CallFrom(ctx).IdempotencyKey)
		vars := tools.Vars(ctx)
		require.NoError(t, vars.Set("same", 1))
		require.NoError(t, vars.Set("new", map[string]int{"n": 2}))
		require.NoError(t, vars.Set("brief", 1))
		require.NoError(t, vars.Set("list", []string{"a", "b"}))
		require.Error(t, vars.Set("bad", math.Inf(1)))
		vars.Remove("old")
		vars.Remove("brief")
		vars.Remove("never")
		_, there := vars.Get("old")
		require.False(t, there)
		value, there := vars.Get("new")
		require.True(t, there)
		require.Equal(t, map[string]any{"n": json.Number("2")}, value)
		return vars.Keys(), nil
	})
	result, err := tool.Invoke(t.Context(), c)
	require.NoError(t, err)
	require.JSONEq(t, `["list","new","same"]`, string(result.Value))
	require.Equal(t, map[string]any{
		"new": map[string]any{"n": json.Number("2")}, "list": []any{"a", "b"},
	}, result.Set)
	require.Equal(t, []string{"old"}, result.Remove)
	require.Len(t, c.Context, 3, "the call's own variables are never changed")

	require.Nil(t, tools.CallFrom(t.Context()))
	require.Empty(t, tools.Vars(t.Context()).Keys())
}

func TestRetryableMarksAnErrorAndKeepsIt(t *testing.T) {
	t.Parallel()
	cause := &events.Error{Code: events.CodeToolError, Msg: "busy"}
	err := fmt.Errorf("outer: %w", tools.Retryable(cause))
	require.True(t, tools.IsRetryable(err))
	require.ErrorIs(t, err, events.ErrToolError)
	require.False(t, tools.IsRetryable(cause))
	require.NoError(t, tools.Retryable(nil))
}

func TestBytesHaveNoJSONForm(t *testing.T) {
	t.Parallel()
	for want, out := range map[string]any{`null`: nil, `{"type":"bytes","len":0}`: []byte{}, `{"type":"bytes","len":3}`: []byte("abc")} {
		result, err := tools.Func(func(context.Context, struct{}) (any, error) { return out, nil }).Invoke(t.Context(), &tools.Call{})
		require.NoError(t, err)
		require.JSONEq(t, want, string(result.Value))
	}
	result, err := tools.Func(func(context.Context, struct{}) ([]byte, error) { return nil, nil }).Invoke(t.Context(), &tools.Call{})
	require.NoError(t, err)
	require.Equal(t, "null", string(result.Value))
}

func TestSchemaOfDescribesTheInput(t *testing.T) {
	t.Parallel()
	schema, err := tools.SchemaOf[order]()
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","required":["item"],"additionalProperties":false,"properties":{
		"item":{"type":"string"},"count":{"type":"integer","description":"how many"},"extra":true}}`, string(schema))
	schema, err = tools.SchemaOf[struct {
		Any  json.RawMessage `json:"any"`
		N    json.Number     `json:"n"`
		Data []byte          `json:"data"`
	}]()
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","required":["any","n","data"],"additionalProperties":false,"properties":{
		"any":true,"n":{"type":"number"},"data":{"type":["null","string"],"contentEncoding":"base64"}}}`, string(schema))
	_, err = tools.SchemaOf[chan int]()
	require.Error(t, err)
}

func ExampleFunc() {
	type greeting struct {
		Name string `json:"name"`
	}
	tool := tools.Func(func(ctx context.Context, in greeting) (string, error) {
		return "Hello " + in.Name, tools.Vars(ctx).Set("greeted", in.Name)
	})
	result, err := tool.Invoke(context.Background(), &tools.Call{Args: map[string]any{"name": "Ada"}})
	fmt.Println(string(result.Value), result.Set, err)
	// Output: "Hello Ada" map[greeted:Ada] <nil>
}

func TestEnterNeedsNoListener(t *testing.T) {
	t.Parallel()
	var none *tools.Call
	none.Enter()
	(&tools.Call{}).Enter()
	entered := 0
	(&tools.Call{Entered: func() { entered++ }}).Enter()
	require.Equal(t, 1, entered)
}

func TestGoFunctionsDoNotQueue(t *testing.T) {
	t.Parallel()
	require.False(t, tools.Queues(tools.Func(func(context.Context, struct{}) (int, error) { return 0, nil })))
}
