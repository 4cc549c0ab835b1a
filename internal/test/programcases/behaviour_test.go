package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// do runs a behaviour as a tool with these arguments.
func do(ctx context.Context, t *testing.T, h *oneturntest.Host, behaviour, args string, n int) (string, error) {
	t.Helper()
	var b Behaviour
	require.NoError(t, json.Unmarshal([]byte(behaviour), &b))
	out, err := oneturntest.CallTool(ctx, h, func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
		return b.run(ctx, &entered{args: in, n: n})
	}, json.RawMessage(args))
	return string(out), err
}

func TestBehavioursOfToolsThatReturn(t *testing.T) {
	t.Parallel()
	for _, row := range [][2]string{
		{`{"do": "echo"}`, `{"list":[1,[2]],"o":{"p":{}},"text":"äb"}`},
		{`{"do": "const", "output": {"n": 1.50}}`, `{"n": 1.50}`},
		{`{"do": "delay", "ms": 1, "then": {"do": "const", "output": 2}}`, `2`},
		{`{"do": "delay", "ms": 1}`, `{}`},
		{`{"do": "sequence", "of": [{"do": "panic"}, {"do": "const", "output": true}]}`, `true`},
		{`{"do": "fill", "field": "x", "bytes": 3, "with": {"n": 12345678901234567890}}`, `{"n":12345678901234567890,"x":"xxx"}`},
		{`{"do": "sizes"}`, `{"list":2,"o":1,"text":2}`},
		{`{"do": "levels"}`, `{"list":2,"o":2,"text":0}`},
		{`{"do": "nest", "field": "f", "levels": 2}`, `{"f":{"in":{"in":{}}}}`},
		{`{"do": "get_context", "names": ["seat", "x"]}`, `{"seat":"12A"}`},
		{`{"do": "set_context", "set": {"a": 1}}`, `{}`},
	} {
		h := &oneturntest.Host{Variables: map[string]any{"seat": "12A"}}
		behaviour, want := row[0], row[1]
		got, err := do(t.Context(), t, h, behaviour, `{"list": [1, [2]], "o": {"p": {}}, "text": "äb"}`, 5)
		require.NoError(t, err, behaviour)
		require.JSONEq(t, want, got, behaviour)
	}
}

func TestBehavioursOfToolsThatFail(t *testing.T) {
	t.Parallel()
	h := &oneturntest.Host{}
	_, err := do(t.Context(), t, h, `{"do": "fail", "code": "user_error", "message": "no stock"}`, `{}`, 1)
	require.Equal(t, events.CodeUserError, events.CodeOf(err))
	require.ErrorContains(t, err, "no stock")
	_, err = do(t.Context(), t, h, `{"do": "fail", "code": "tool_error", "message": "busy", "retryable": true}`, `{}`, 1)
	require.True(t, tools.IsRetryable(err))
	_, err = do(t.Context(), t, h, `{"do": "fail", "code": "guardrail", "message": "no"}`, `{}`, 1)
	require.Equal(t, events.CodeGuardrail, events.CodeOf(err))
	_, err = do(t.Context(), t, h, `{"do": "panic", "message": "boom"}`, `{}`, 1)
	require.ErrorContains(t, err, "boom")
	_, err = do(t.Context(), t, h, `{"do": "dance"}`, `{}`, 1)
	require.ErrorContains(t, err, "dance")
}

func TestHangingToolEndsWithItsContext(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(stopped) })
	for _, behaviour := range []string{`{"do": "hang"}`, `{"do": "delay", "ms": 3600000}`} {
		_, err := do(ctx, t, &oneturntest.Host{}, behaviour, `{}`, 1)
		require.ErrorIs(t, err, stopped)
	}
}

func TestAskingToolReturnsTheAnswer(t *testing.T) {
	t.Parallel()
	h := &oneturntest.Host{}
	const ask = `{"do": "ask", "question": {"component": "Approve", "payload": {"what": "x"}, "schema": {"type": "string"}}}`
	_, err := do(t.Context(), t, h, ask, `{}`, 1)
	require.ErrorIs(t, err, tool.ErrParked)
	h.Answer("1", "yes")
	got, err := do(t.Context(), t, h, ask, `{}`, 2)
	require.NoError(t, err)
	require.JSONEq(t, `{"answer": "yes"}`, got)
}
