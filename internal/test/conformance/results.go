package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Promises about results: what a tool returns arrives digit by digit and within its bounds, what cannot be JSON is
// refused by name, and the tool knows which call it runs.

var results = []test{ //nolint:gochecknoglobals // a table
	{"ResultIsWhatTheToolReturned", []string{"echo"}, (*suite).returnsResults},
	{"ArgumentsAreNotChanged", []string{"echo"}, (*suite).keepsArguments},
	{"NothingIsNull", []string{"null"}, (*suite).returnsNull},
	{"BigResultComesWhole", []string{"big"}, (*suite).returnsBig},
	{"ResultOverTheLimitIsTooLarge", []string{"big"}, (*suite).boundsResults},
	{"WhatIsNoJSONIsToolError", []string{"garbage"}, (*suite).refusesGarbage},
	{"TextIsAString", []string{"text"}, (*suite).takesTexts},
	{"MarkAndBlanksAroundJSONDoNotCount", []string{"marked"}, (*suite).takesMarks},
	{"NumberThatIsNoneIsNamed", []string{"nan"}, (*suite).namesNaN},
	{"NumberOverTheLimitIsNamed", []string{"huge"}, (*suite).namesHuge},
	{"ToolIsToldWhoCalls", []string{"identity"}, (*suite).passesIdentity},
	{"IdsWithControlCharactersForgeNothing", []string{"identity"}, (*suite).escapesIdentity},
	{"ManyCallsAtOnceGetTheirOwnResults", []string{"echo"}, (*suite).runsMany},
	{"DescriptionIsOfTheTool", []string{"echo"}, (*suite).describes},
}

// exactly requires a result, digit by digit.
func (s *suite) exactly(want string, result tools.Result) {
	s.Helper()
	wanted, err := events.Decode([]byte(want))
	require.NoError(s, err)
	got, err := events.Decode(result.Value)
	require.NoError(s, err, "the result is not strict JSON")
	require.Equal(s, wanted, got)
}

func (s *suite) returnsResults() {
	for _, args := range []string{
		`{}`,
		`{"text":"Grüße, 世界 \u0000 \u2028 \"quoted\" \\ <b>&</b>","empty":""}`,
		`{"number":12345678901234567890,"small":-7,"fraction":1.5,"null":null,"yes":true}`,
		`{"deep":{"list":[1,[2,[3,{"four":{}}]],[]]}}`,
	} {
		result, err := s.invoke("echo", args)
		require.NoError(s, err, args)
		s.exactly(args, result)
		require.Empty(s, result.Set)
		require.Empty(s, result.Remove)
	}
}

func (s *suite) keepsArguments() {
	const args = `{"a":{"b":[1,2,{"c":null}]}}`
	call := s.call("echo", args)
	_, err := s.run(call)
	require.NoError(s, err)
	require.Equal(s, s.call("echo", args).Args, call.Args)
}

func (s *suite) returnsNull() {
	o := s.do(s.Context(), s.call("null", `{}`), 1, patience)
	require.NoError(s, o.Err)
	require.Equal(s, "null", string(o.Payload))
}

func (s *suite) returnsBig() {
	const size = 512 << 10
	result, err := s.invoke("big", fmt.Sprintf(`{"bytes":%d}`, size))
	require.NoError(s, err)
	var out struct {
		Text string `json:"text"`
	}
	require.NoError(s, json.Unmarshal(result.Value, &out))
	require.True(s, out.Text == strings.Repeat("x", size), "%d bytes came", len(out.Text)) //nolint:testifylint // would print them
}

func (s *suite) boundsResults() {
	if s.kind.MaxOutput == 0 {
		return // it is the engine's
	}
	_, err := s.invoke("big", fmt.Sprintf(`{"bytes":%d}`, s.kind.MaxOutput+1))
	s.failed(err, "", events.CodeTooLarge)
	s.works()
}

func (s *suite) refusesGarbage() {
	_, err := s.invoke("garbage", `{}`)
	s.failed(err, "", events.CodeToolError)
	require.NotEmpty(s, tools.EffectState(err), "it may have had its effect")
	s.works()
}

func (s *suite) takesTexts() {
	result, err := s.invoke("text", `{}`)
	require.NoError(s, err)
	s.exactly(`"done"`, result)
}

func (s *suite) takesMarks() {
	result, err := s.invoke("marked", `{}`)
	require.NoError(s, err)
	s.exactly(`{"ok":true}`, result)
}

func (s *suite) namesNaN() {
	_, err := s.invoke("nan", `{}`)
	s.failed(err, "NaN", events.CodeToolError)
	require.Equal(s, events.EffectHappened, tools.EffectState(err))
	s.works()
}

func (s *suite) namesHuge() {
	_, err := s.invoke("huge", `{}`)
	s.failed(err, "number", events.CodeToolError)
	require.Equal(s, events.EffectHappened, tools.EffectState(err))
	s.works()
}

func (s *suite) passesIdentity() {
	call := s.call("identity", `{}`)
	for epoch := 1; epoch <= 2; epoch++ {
		call.Epoch, call.FencingToken, call.Attempt, call.Depth = epoch, uint64(1)<<60+uint64(epoch), 3-epoch, 2*(epoch-1)
		result, err := s.run(call)
		require.NoError(s, err)
		want, err := json.Marshal(Identity{call.IdempotencyKey, call.FencingToken, call.Epoch, call.Attempt, call.Depth})
		require.NoError(s, err)
		s.exactly(string(want), result)
	}
}

func (s *suite) escapesIdentity() {
	call := s.call("identity", `{}`)
	const forged = "\r\nOneturn-Epoch: 99\r\nOneturn-Fencing-Token: 99\r\nOneturn-Attempt: 99\r\nOneturn-Depth: 99\r\n\r\n{}"
	call.UserID, call.Agent, call.Workflow = "ada"+forged, "agent"+forged, "Suite"+forged
	call.Turn.App, call.Turn.Chat, call.Turn.Turn, call.CallID = "app"+forged, "chat"+forged, "turn"+forged, "call"+forged
	result, err := s.run(call)
	if err != nil { // it may refuse to call at all
		s.failed(err, "", events.CodeBadArgs, events.CodeToolError)
		return
	}
	var passed Identity
	require.NoError(s, json.Unmarshal(result.Value, &passed))
	require.Equal(s, Identity{call.IdempotencyKey, call.FencingToken, call.Epoch, call.Attempt, call.Depth}, passed)
}

func (s *suite) runsMany() {
	const calls = 48
	var wg sync.WaitGroup
	got, errs := make([]tools.Result, calls), make([]error, calls)
	for i := range calls {
		call := s.call("echo", fmt.Sprintf(`{"call":%d}`, i))
		wg.Go(func() { got[i], errs[i] = s.run(call) })
	}
	wg.Wait()
	for i := range calls {
		require.NoError(s, errs[i])
		s.exactly(fmt.Sprintf(`{"call":%d}`, i), got[i])
	}
}

func (s *suite) describes() {
	d, ok := s.kind.Invoker("echo").(tools.Describer)
	if !ok {
		return // it learns nothing
	}
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	passed, err := d.Describe(ctx)
	require.NoError(s, err)
	known, ok := d.Known()
	require.True(s, ok, "what was passed is known")
	require.Equal(s, passed, known)
	for _, schema := range []json.RawMessage{passed.Input, passed.Output} {
		require.True(s, schema == nil || json.Valid(schema), "%s", schema)
	}
	ended, end := context.WithDeadline(s.Context(), time.Unix(0, 0))
	defer end()
	if passed, err := d.Describe(ended); err == nil { // from memory
		require.Equal(s, known, passed)
	}
}
