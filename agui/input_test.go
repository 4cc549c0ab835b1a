package agui_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
)

func read(s string) (*agui.RunAgentInput, error) {
	return agui.ReadInput(strings.NewReader(s), agui.InputLimits{})
}

const minimal = `{"threadId":"t","runId":"r","messages":[]}`

func TestInputOfEachGenerationOfClientsIsRead(t *testing.T) {
	t.Parallel()
	in, err := read(minimal)
	require.NoError(t, err)
	require.Equal(t, "t", in.ThreadID)
	require.Empty(t, in.Messages)
	require.True(t, in.Peer().Before1())

	// As 0.0.59 and 1.0.0 send it, and with members of versions to come.
	in, err = read(`{"threadId":"t","runId":"r","protocolVersion":"1.7","parentRunId":null,"state":{"a":1.50},"tools":null,"context":[],"new":{"x":[1]},
		"forwardedProps":{},"messages":[
		{"id":"u1","role":"user","content":"build it","new":1},
		{"id":"u2","role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","value":"https://x/y","new":1},"new":2},{"type":"text","text":"b"}]},
		{"id":"a1","role":"assistant","content":null,"toolCalls":[{"id":"c1","type":"function","function":{"name":"pick","arguments":"{}"}}]},
		{"id":"x","role":"tool","toolCallId":"c1","content":"{\"ok\":true}","error":"no"},
		{"id":"p","role":"poet","content":"roses"}],
		"resume":[{"interruptId":"int_c2","status":"resolved","payload":12345678901234567890},{"interruptId":"int_c3","status":"cancelled"}]}`)
	require.NoError(t, err)
	require.Equal(t, agui.Peer{Major: 1, Minor: 7}, in.Peer())
	require.JSONEq(t, `{"a":1.50}`, string(in.State))
	require.Equal(t, "a\nb", in.Messages[1].Content.String())
	require.Equal(t, "https://x/y", in.Messages[1].Content.Parts[1].Source.Value)
	require.Equal(t, "pick", in.Messages[2].ToolCalls[0].Function.Name)
	require.Equal(t, "no", in.Messages[3].Error)
	require.Equal(t, agui.Role("poet"), in.Messages[4].Role)
	require.Equal(t, "12345678901234567890", string(in.Resume[0].Payload))
	require.Nil(t, in.Resume[1].Payload)
	_, ok := in.Tool("pick")
	require.False(t, ok)
}

func TestToolsOfTheClientAreFoundByName(t *testing.T) {
	t.Parallel()
	in, err := read(`{"threadId":"t","runId":"r","messages":[],"tools":[{"name":"pick","description":"d","parameters":{"type":"object"}}]}`)
	require.NoError(t, err)
	tool, ok := in.Tool("pick")
	require.True(t, ok)
	require.JSONEq(t, `{"type":"object"}`, string(tool.Parameters))
}

func TestRefusedInputNamesTheFieldAndTheFix(t *testing.T) {
	t.Parallel()
	messages := func(s string) string { return `{"threadId":"t","runId":"r","messages":[` + s + `]}` }
	deep := messages(`{"id":"u","role":"activity","content":` + strings.Repeat(`{"a":`, 70) + `1` + strings.Repeat(`}`, 70) + `}`)
	for _, c := range []struct{ input, code, field, fix string }{
		{``, agui.CodeBadJSON, "", "one document"},
		{`[]`, agui.CodeBadJSON, "", "an object"},
		{`"x"`, agui.CodeBadJSON, "", "an object"},
		{"{\"a\\u001b\\n\": 1e999}", agui.CodeBadJSON, "a??", "a string"},
		{`{"threadId":"t",`, agui.CodeBadJSON, "", "all of it"},
		{minimal + `{}`, agui.CodeBadJSON, "", "one document"},
		{minimal + `]`, agui.CodeBadJSON, "", "one document"},
		{`{"threadId":"t","threadId":"t2","runId":"r","messages":[]}`, agui.CodeBadJSON, "threadId", "once"},
		{messages(`{"id":"u","role":"user","content":"a","content":"b"}`), agui.CodeBadJSON, "messages[0].content", "once"},
		{"{\"threadId\":\"\xff\"}", agui.CodeBadJSON, "threadId", "UTF-8"},
		{`{"threadId":"\ud800"}`, agui.CodeBadJSON, "threadId", "UTF-8"},
		{`{"threadId":"t","state":1e999}`, agui.CodeBadJSON, "state", "a string"},
		{`{"threadId":"t","state":` + strings.Repeat("1", 65) + `}`, agui.CodeBadJSON, "state", "a string"},
		{deep, agui.CodeBadJSON, "messages[0].content.a.a", "inside each other"},
		{`{}`, agui.CodeMissingField, "threadId", "id of the conversation"},
		{`{"threadId":null,"runId":"r","messages":[]}`, agui.CodeMissingField, "threadId", "required"},
		{`{"threadId":"t","messages":[]}`, agui.CodeMissingField, "runId", "new id"},
		{`{"threadId":"t","runId":"r"}`, agui.CodeMissingField, "messages", "may be empty"},
		{`{"threadId":"t","runId":"r","messages":null}`, agui.CodeMissingField, "messages", "may be empty"},
		{messages(`{"role":"user","content":"x"}`), agui.CodeMissingField, "messages[0].id", "id of the message"},
		{messages(`{"id":"u","content":"x"}`), agui.CodeMissingField, "messages[0].role", "user"},
		{messages(`{"id":"u","role":"tool","content":"x"}`), agui.CodeMissingField, "messages[0].toolCallId", "call"},
		{messages(`{"id":"u","role":"assistant","toolCalls":[{"function":{"name":"x"}}]}`), agui.CodeMissingField, "messages[0].toolCalls[0].id", "call"},
		{messages(`{"id":"u","role":"user","content":[{"type":"text","text":"x"},{}]}`), agui.CodeMissingField, "messages[0].content[1].type", "text"},
		{messages(`{"id":"u","role":"user","content":"x"},{"id":"v","role":"assistant","toolCalls":[{"id":"c"},{}]},{"id":1}`), agui.CodeMissingField, "messages[1].toolCalls[1].id", "call"},
		{messages(`null`), agui.CodeMissingField, "messages[0].id", "id"},
		{`{"threadId":1,"runId":"r","messages":[]}`, agui.CodeInvalidField, "threadId", "a string"},
		{`{"threadId":"t","runId":"r","messages":{}}`, agui.CodeInvalidField, "messages", "a list"},
		{messages(`"hi"`), agui.CodeInvalidField, "messages[0]", "an object"},
		{messages(`{"id":"u","role":"user","content":"ok"},{"id":"v","role":"user","content":7}`), agui.CodeInvalidField, "messages[1].content", "a string or a list"},
		{messages(`{"id":"u","role":"user","content":["x"]}`), agui.CodeInvalidField, "messages[0].content[0]", "an object"},
		{messages(`{"id":"u","role":"user","content":[{"type":"text","text":1}]}`), agui.CodeInvalidField, "messages[0].content[0].text", "a string"},
		{messages(`{"id":"u","role":"assistant","toolCalls":[{"id":"c","function":{"arguments":{}}}]}`), agui.CodeInvalidField, "messages[0].toolCalls[0].function.arguments", "a string"},
		{`{"threadId":"t","runId":"r","messages":[],"tools":[{"name":""}]}`, agui.CodeMissingField, "tools[0].name", "name"},
		{`{"threadId":"t","runId":"r","messages":[],"resume":[{"status":"resolved"}]}`, agui.CodeMissingField, "resume[0].interruptId", "interrupt"},
		{`{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"done"}]}`, agui.CodeInvalidField, "resume[0].status", "cancelled"},
		{`{"threadId":"t","runId":"r","messages":[],"protocolVersion":"2.0"}`, agui.CodeUnsupportedVersion, "protocolVersion", "1.0"},
		{`{"threadId":"t","runId":"r","messages":[],"protocolVersion":"latest"}`, agui.CodeInvalidField, "protocolVersion", "1.0"},
	} {
		_, err := read(c.input)
		var refused *agui.InputError
		require.ErrorAs(t, err, &refused, c.input)
		require.Equal(t, c.code, refused.Code, "%s: %v", c.input, err)
		if !strings.HasPrefix(c.input, deep[:50]) || c.input != deep {
			require.Equal(t, c.field, refused.Field, "%s: %v", c.input, err)
		} else {
			require.True(t, strings.HasPrefix(refused.Field, c.field), refused.Field)
		}
		require.Contains(t, refused.Msg, c.fix, c.input)
		require.Equal(t, http.StatusBadRequest, refused.Status())
	}
}

func TestInputsBeyondTheLimitsAreTooLarge(t *testing.T) {
	t.Parallel()
	for _, input := range []string{
		`{"threadId":"` + strings.Repeat("x", 1<<20) + `"}`,
		`{"threadId":"t","runId":"r","messages":[],"state":[` + strings.Repeat("0,", 100_000) + `0]}`,
	} {
		_, err := read(input)
		var refused *agui.InputError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, agui.CodeTooLarge, refused.Code)
		require.Equal(t, http.StatusRequestEntityTooLarge, refused.Status())
	}
	_, err := read(`{"threadId":"t","runId":"r","messages":[],"state":[` + strings.Repeat("0,", 99_990) + `0]}`)
	require.NoError(t, err)

	limits := agui.InputLimits{Bytes: int64(len(minimal)), Depth: 2, Values: 4}
	_, err = agui.ReadInput(strings.NewReader(minimal), limits)
	require.NoError(t, err)
	for _, smaller := range []agui.InputLimits{{Bytes: limits.Bytes - 1}, {Depth: 1}, {Values: 3}} {
		_, err = agui.ReadInput(strings.NewReader(minimal), smaller)
		require.ErrorAs(t, err, new(*agui.InputError))
	}
}

// A body of any length costs no more than the limit.
func TestEndlessBodyIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	var count int
	endless := readerFunc(func(p []byte) (int, error) {
		for i := range p {
			p[i] = ' '
		}
		count += len(p)
		return len(p), nil
	})
	_, err := agui.ReadInput(endless, agui.InputLimits{})
	require.ErrorAs(t, err, new(*agui.InputError))
	require.LessOrEqual(t, count, 1<<20+1)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestErrorsOfTheConnectionAreNotOnesOfTheInput(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	_, err := agui.ReadInput(io.MultiReader(strings.NewReader(`{"a":`), iotest.ErrReader(lost)), agui.InputLimits{})
	require.ErrorIs(t, err, lost)
	require.NotErrorAs(t, err, new(*agui.InputError))
}

func TestErrorsOfInputsAreShortAndHaveNoValues(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("secret", 5000)
	for _, input := range []string{
		`{"` + strings.Repeat("k", 5000) + `":{"é` + strings.Repeat("é", 5000) + `":1e999}}`,
		`{"threadId":{"a":"` + secret + `"}}`,
		`{"threadId":"t","runId":"r","messages":"` + secret + `"}`,
		`{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":{"a":"` + secret + `"}}]}`,
	} {
		_, err := read(input)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 500)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestPeersOfOtherMajorsAreRefused(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]agui.Peer{"": {}, "1.0": {Major: 1}, "1.12": {Major: 1, Minor: 12}} {
		peer, err := agui.ParsePeer(version)
		require.NoError(t, err)
		require.Equal(t, want, peer)
		require.Equal(t, version == "", peer.Before1())
	}
	for _, version := range []string{"0.9", "2.0", "9.9", "1", "1.", ".1", "1.0.0", "+1.0", "1.-1", "1.99999", " 1.0", "v1.0"} {
		_, err := agui.ParsePeer(version)
		require.Error(t, err, version)
	}
}
