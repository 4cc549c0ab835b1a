package events_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

// benchBodies are turns of about 1 KiB: twenty flat fields, and ten nested steps.
func benchBodies() map[string][]byte {
	const fields, steps = 20, 10
	flat, deep := make([]string, 0, fields), make([]string, 0, steps)
	for i := range fields {
		flat = append(flat, fmt.Sprintf(`"field_%02d":"a text of usual length"`, i))
	}
	for i := range steps {
		deep = append(deep, fmt.Sprintf(`{"id":%d,"name":"step","args":{"x":1.5,"ok":true},"tags":["a","b"]}`, i))
	}
	const body = `{"type":"chat.structured_output_ready","data":{"kind":"structured_output_ready","agent":"A","agent_name":"A","model_name":"Out","structured_data":{%s},"auto_tool_mode":true,"turn_idempotency_key":"turn-1","context":{"chat_id":"c","app_id":"a","workflow_name":"W","turn_sequence":1}},"timestamp":"2026-01-02T03:04:05.678Z"}`
	return map[string][]byte{
		"flat":   fmt.Appendf(nil, body, strings.Join(flat, ",")),
		"nested": fmt.Appendf(nil, body, `"steps":[`+strings.Join(deep, ",")+`]`),
	}
}

func benchEach(b *testing.B, run func(body []byte) error) {
	b.Helper()
	for name, body := range benchBodies() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, run(body))
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	benchEach(b, func(body []byte) error {
		_, err := events.Decode(body)
		return err
	})
}

func BenchmarkDecodeTurn(b *testing.B) {
	benchEach(b, func(body []byte) error {
		_, err := events.DecodeTurn(body)
		return err
	})
}

func BenchmarkFingerprint(b *testing.B) {
	turns := map[string]*events.StructuredOutputReady{}
	for _, body := range benchBodies() {
		turn, err := events.DecodeTurn(body)
		require.NoError(b, err)
		turns[string(body)] = turn
	}
	benchEach(b, func(body []byte) error {
		_ = events.Fingerprint(turns[string(body)])
		return nil
	})
}

func BenchmarkEncodeToolCall(b *testing.B) {
	calls := map[string]*events.ToolCall{}
	for _, body := range benchBodies() {
		turn, err := events.DecodeTurn(body)
		require.NoError(b, err)
		call := sampleCall()
		call.Payload.ToolArgs = turn.Data
		calls[string(body)] = call
	}
	benchEach(b, func(body []byte) error {
		_, err := events.Encode(events.KindToolCall, calls[string(body)], noon)
		return err
	})
}
