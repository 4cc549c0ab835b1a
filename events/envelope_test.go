package events_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

// textOnly are fields that MozaiksAI adds to texts on their way to a browser. The events
// that oneturn writes do not have them, and they are not compared.
var textOnly = []string{"is_structured_capable", "is_visual", "is_tool_agent", "sequence", "_mozaiks_hide"}

// bareKinds are kinds that MozaiksAI sends without prefix because its table forgot them.
var bareKinds = []string{"context_update", "component_action_ack"}

// TestObservedEnvelopesAreWrittenAndRead compares type and data, and of texts the kind, the
// agent and the content. The timestamp is the current time, a top-level chat_id is not ours.
func TestObservedEnvelopesAreWrittenAndRead(t *testing.T) {
	t.Parallel()
	for _, line := range observedLines(t, "envelope.txt") {
		if line[1] == "null" { // no event there, and none here
			_, err := events.Parse([]byte(line[0]))
			require.ErrorIs(t, err, events.ErrBadArgs, line[0])
			continue
		}
		bare, err := events.Parse([]byte(line[0]))
		require.NoError(t, err, line[0])
		want, ok := mustDecode(t, line[1]).(map[string]any)
		require.True(t, ok)
		data, ok := want["data"].(map[string]any)
		require.True(t, ok)
		wantType := want["type"]
		if slices.Contains(bareKinds, bare.Kind) {
			require.Equal(t, wantType, bare.Kind)
			wantType = "chat." + bare.Kind
		}
		for _, field := range textOnly {
			delete(data, field)
		}
		if data["auto_tool_mode"] == true {
			// MozaiksAI turns a 1 into true; here only true is true, and a 1 stays what it is.
			turn, err := bare.Turn()
			require.NoError(t, err)
			require.False(t, turn.AutoToolMode)
			data["auto_tool_mode"] = number("1")
		}

		require.Equal(t, wantType, events.TypeOf(bare.Kind))
		body, err := events.Encode(bare.Kind, bare.Data, noon)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"type": wantType, "data": data, "timestamp": "2026-01-02T12:00:00.007Z"}, mustDecode(t, string(body)))

		opened, err := events.Parse(body)
		require.NoError(t, err)
		require.Equal(t, bare.Kind, opened.Kind)
		require.Equal(t, data, opened.Data)
	}
}

func TestErrorForABodyThatIsNotJSONNamesTheExpectedObject(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"no JSON":    "decode event: bad_args: invalid JSON at byte 0: expected a JSON object",
		"\n true?":   "decode event: bad_args: invalid JSON at byte 2: expected a JSON object",
		"[1, 2":      "decode event: bad_args: invalid JSON at byte 0: expected a JSON object",
		"[1, 2]":     "decode event: bad_args: the body is an array: expected an object",
		`{"a": nul}`: `decode event: bad_args: invalid JSON at byte 6, "/a": expected null`,
		"":           "decode event: bad_args: invalid JSON at byte 0: the document ends where a value is expected",
	} {
		_, err := events.Parse([]byte(body))
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, events.ErrBadArgs)
	}
}

func TestEveryKindHasThePrefixOnce(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"text": "chat.text", "chat.text": "chat.text", "tool_progress": "chat.tool_progress", "chat": "chat.chat", "": "",
	} {
		require.Equal(t, want, events.TypeOf(kind))
		body, err := events.Encode(kind, map[string]any{"a": "b"}, noon)
		require.NoError(t, err)
		m, err := events.Parse(body)
		require.NoError(t, err, "%s", body)
		require.Equal(t, want, events.TypeOf(m.Kind))
	}
	_, err := events.Parse([]byte(`{"type":"chat.text","data":{"kind":"chat.print"}}`))
	require.ErrorContains(t, err, "send one kind")
}

// observedLines reads the lines `left => right` of a file of observed cases.
func observedLines(t *testing.T, file string) [][2]string {
	t.Helper()
	data, err := os.ReadFile("../testdata/mozaiks/" + file)
	require.NoError(t, err)
	var all [][2]string
	for line := range strings.Lines(string(data)) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " => ")
		require.True(t, ok, line)
		all = append(all, [2]string{left, right})
	}
	require.NotEmpty(t, all)
	return all
}
