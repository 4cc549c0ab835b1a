package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

var fuzzSeeds = []string{
	`null`, `-0`, `1.0e+5`, `1e309`, `[1,2,[3,{"a":"b"}]]`, `{"a":1,"a":2}`, `"\ud83d\ude00"`, `"\ud800"`,
	"\"\xff\"", `{"a":{"b":[]}} x`, ` [ ] `, `"\u0000"`, "\"\x00\"", nest(64), nest(65), strings.Repeat("9", 65), `{"":""}`,
	`{"type":"chat.structured_output_ready","data":{"agent":"A","structured_data":{"x":[1]},"auto_tool_mode":true,"turn_idempotency_key":"t","context":{"chat_id":12,"enterprise_id":"e"}},"timestamp":"2026-01-02T03:04:05Z"}`,
	`{"kind":"structured_output_ready","auto_tool_mode":true,"chat_id":"c\u0000","turn_idempotency_key":"t"}`,
	`{"kind":"retry","resume_of":"t","rerun":["1"],"structured_data":{"x":1},"chat_id":"c","turn_idempotency_key":"t~retry1"}`,
	`{"kind":"plan_ready","plan":{"b":1,"a":[]},"structured_data":{"x":1},"chat_id":"c","turn_idempotency_key":"t"}`,
	`{"auto_tool_mode":true,"context":[]}`, `{"type":"chat.cancel","data":{"chat_id":"c","turn":"t"}}`,
}

// withinLimits is an independent reading of the limits of Decode for valid JSON.
func withinLimits(doc []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(doc))
	nodes := 0
	for {
		tok, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return nodes <= events.MaxNodes
		}
		kind, isKey := tok.Kind(), false
		if container, n := d.StackIndex(d.StackDepth()); container == '{' && kind == '"' {
			isKey = n%2 == 1
		}
		if kind != '}' && kind != ']' && !isKey {
			nodes++
		}
		if d.StackDepth() > events.MaxDepth {
			return false
		}
		if kind == '0' {
			literal := tok.String()
			_, exponent, _ := strings.Cut(strings.ToLower(literal), "e")
			e, _ := strconv.ParseFloat("0"+strings.TrimLeft(exponent, "+-"), 64)
			if len(literal) > events.MaxNumberChars || e > events.MaxExponent {
				return false
			}
		}
	}
}

// FuzzDecode compares Decode with two other parsers: jsontext, which is as strict about keys and
// UTF-8, decides what is valid; encoding/json decides what it means.
func FuzzDecode(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := events.Decode(doc)
		valid := jsontext.Value(doc).IsValid() && withinLimits(doc)
		require.Equal(t, valid, err == nil, "Decode returns %v", err)
		if err != nil {
			var syntax *events.SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.GreaterOrEqual(t, syntax.Offset, int64(0))
			require.LessOrEqual(t, syntax.Offset, int64(len(doc)))
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber()
		require.NoError(t, d.Decode(&want))
		require.Equal(t, want, v)

		canonical := mustAppend(t, v)
		require.Equal(t, v, mustDecode(t, canonical))
		require.Equal(t, canonical, mustAppend(t, json.RawMessage(doc)))
	})
}

// FuzzDecodeTurn holds that whatever decodes as a turn keeps the limits of the wire, can be
// answered by an event and is the same after another trip over the wire.
func FuzzDecodeTurn(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if c, err := events.DecodeCancel(body); err == nil {
			require.NotEmpty(t, c.Chat)
			require.NotEmpty(t, c.Turn)
		} else {
			require.ErrorIs(t, err, events.ErrBadArgs)
		}
		turn, err := events.DecodeTurn(body)
		if err != nil {
			require.ErrorIs(t, err, events.ErrBadArgs)
			return
		}
		if !turn.AutoToolMode {
			return
		}
		for _, id := range []string{turn.App, turn.Chat, turn.Turn} {
			require.NotEmpty(t, id)
		}
		for _, id := range []string{turn.App, turn.Chat, turn.Run, turn.Turn, turn.Workflow, turn.Agent, turn.Model, turn.UserID} {
			require.LessOrEqual(t, len(id), events.MaxIDBytes)
			require.NotContains(t, id, "\x00")
		}
		call := events.ToolCall{Payload: events.ToolCallPayload{ToolArgs: map[string]any{"data": turn.Data}}}
		_, err = events.Encode(events.KindToolCall, &call, noon)
		require.NoError(t, err)

		requireCanonicalData(t, string(body))

		again, err := events.EncodeTurn(turn, noon)
		require.NoError(t, err)
		requireCanonicalData(t, string(again))
		turned, err := events.DecodeTurn(again)
		require.NoError(t, err)
		turned.Timestamp = turn.Timestamp
		require.Equal(t, turn, turned)
		require.Equal(t, events.Fingerprint(turn), events.Fingerprint(turned))
	})
}
